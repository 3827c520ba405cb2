// The header's sections that a pipe brought so far: each counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "format/cursor.h"
#include "format/diagnostics.h"

namespace tacho::format {

// A pipe may bring a section again, when symbol tables and views hold what the first one said, and samples
// were shown by it: so the first stays. Of EVENT_DESC, ATTACHED_PROGRAMS and USER_STACKS, which are written
// again when there is more to tell, and which nobody holds, the last.
class TakenSections {
 public:
  // Whether the section at `offset` is to be left out, as one of its feature was taken. Told to `diagnostics`
  // if it is another.
  bool leaves_out(std::uint32_t feature, Bytes bytes, std::uint64_t offset, Diagnostics& diagnostics) const;
  void add(std::uint32_t feature, Bytes bytes);

 private:
  // By feature, a number below kFeatureCount. Who makes two sections with one digest spares himself a
  // message.
  std::unordered_map<std::uint32_t, std::size_t> digests_;
};

}  // namespace tacho::format
