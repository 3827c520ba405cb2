#include "symbolize/names/function_ranges.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace tacho::symbolize {

RangeIndex::RangeIndex(std::vector<RankedRange> ranges) {
  std::erase_if(ranges, [](const RankedRange& range) { return range.start >= range.end; });
  std::ranges::sort(ranges, {}, &RankedRange::start);
  std::vector<std::uint64_t> borders;
  borders.reserve(ranges.size() * 2);
  for (const RankedRange& range : ranges) borders.insert(borders.end(), {range.start, range.end});
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());

  const auto is_worse = [](const RankedRange* a, const RankedRange* b) {
    return a->rank != b->rank ? a->rank > b->rank : a->owner < b->owner;
  };
  // A heap of the ranges that have begun, the best on top; ended ones are removed when they reach the top.
  std::priority_queue<const RankedRange*, std::vector<const RankedRange*>, decltype(is_worse)> open(is_worse);
  auto next = ranges.begin();
  for (const std::uint64_t border : borders) {
    for (; next != ranges.end() && next->start == border; ++next) open.push(&*next);
    while (!open.empty() && open.top()->end <= border) open.pop();
    const std::uint32_t owner = open.empty() ? kNone : open.top()->owner;
    if (!owners_.empty() && owners_.back() == owner) continue;
    starts_.push_back(border);
    owners_.push_back(owner);
  }
}

std::optional<std::uint32_t> RangeIndex::find_range(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(starts_, address);
  if (after == starts_.begin()) return std::nullopt;
  const std::uint32_t owner = owners_[static_cast<std::size_t>(after - starts_.begin()) - 1];
  return owner == kNone ? std::nullopt : std::optional(owner);
}

FunctionRanges::FunctionRanges(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  std::ranges::stable_sort(ranges_, {}, &Range::start);
}

std::optional<FunctionRanges::Function> FunctionRanges::find_function(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::start);
  if (after == ranges_.begin()) return std::nullopt;
  const auto at = std::prev(after);
  if (address >= at->end) return std::nullopt;
  return Function{static_cast<std::uint32_t>(at - ranges_.begin()), *at};
}

}  // namespace tacho::symbolize
