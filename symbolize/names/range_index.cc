#include "symbolize/names/range_index.h"

#include <algorithm>
#include <queue>

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
  // Ranges that have begun, the best on top; ended ones are left in until they come to the top.
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

std::optional<std::uint32_t> RangeIndex::find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(starts_, address);
  if (after == starts_.begin()) return std::nullopt;
  const std::uint32_t owner = owners_[static_cast<std::size_t>(after - starts_.begin()) - 1];
  return owner == kNone ? std::nullopt : std::optional(owner);
}

}  // namespace tacho::symbolize
