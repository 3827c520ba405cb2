// Call chains by frame pointers of arm64 captures: a function that calls nobody keeps no frame there, so the
// kernel's walk leaves its caller out. perf records the link register beside such chains, which has it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/records/event_attr.h"
#include "format/records/sample.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

class LeafCaller {
 public:
  // The sample's chain with that caller in it, as perf makes it. Nothing when it has all it needs, or the
  // event did not record the link register alone. Valid until the next call.
  std::optional<format::U64Array> chain_of(const format::Sample& sample, const format::EventAttr& attr,
                                           symbolize::Unwinder& unwinder,
                                           const symbolize::SpaceVersion& space, std::endian order);

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace tacho::report
