// Which of many overlapping ranges an address belongs to, decided once for every address, so that a lookup is
// one binary search.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tacho::symbolize {

struct RankedRange {
  std::uint64_t start = 0, end = 0;  // end is past the last
  std::uint64_t rank = 0;            // of ranges that hold an address, the lowest rank has it
  std::uint32_t owner = 0;           // and of equal ranks the highest owner
};

class RangeIndex {
 public:
  RangeIndex() = default;
  // Ranges that are empty, or end before they start, hold nothing.
  explicit RangeIndex(std::vector<RankedRange> ranges);

  std::optional<std::uint32_t> find(std::uint64_t address) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint64_t> starts_;  // ascending; each piece reaches to the next one
  std::vector<std::uint32_t> owners_;  // beside starts_
};

}  // namespace tacho::symbolize
