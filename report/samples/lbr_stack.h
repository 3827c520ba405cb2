// Call chains of captures made with --call-graph lbr: the processor kept the calls that have not returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/records/event_attr.h"
#include "format/records/sample.h"

namespace tacho::report {

class LbrStack {
 public:
  // The sample's chain as perf makes it: the kernel's part as recorded, up to the mark of the user's part;
  // then, instead of that part, where the newest call went to, and where each call came from. These are no
  // return addresses, so a mark stands before each. Nothing when the event kept no calls, or when there is no
  // such mark in the first `max_words` words (perf takes the chain as it is recorded then). Valid until the
  // next call.
  std::optional<format::U64Array> chain_of(const format::Sample& sample, const format::EventAttr& attr,
                                           std::size_t max_words);

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace tacho::report
