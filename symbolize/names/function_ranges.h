// Ranges of addresses: one owner for each address of overlapping ranges, and functions without symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tacho::symbolize {

struct RankedRange {
  std::uint64_t start = 0, end = 0;  // end is past the last
  std::uint64_t rank = 0;            // of the ranges with an address, the one with the lowest rank owns it,
  std::uint32_t owner = 0;           // of equal ranks the one with the highest owner
};

// Index over overlapping ranges, cut into pieces with one owner each, so that a lookup is one binary search.
class RangeIndex {
 public:
  RangeIndex() = default;
  // Ranges that are empty, or end before they start, are ignored.
  explicit RangeIndex(std::vector<RankedRange> ranges);

  std::optional<std::uint32_t> find_range(std::uint64_t address) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint64_t> starts_;  // of the pieces, ascending; each ends at the next one's start
  std::vector<std::uint32_t> owners_;  // of the pieces
};

// The functions of code without symbols, from call frame information.
class FunctionRanges {
 public:
  struct Range {
    std::uint64_t start = 0, end = 0;  // [start, end)
  };
  struct Function {
    std::uint32_t number = 0;  // below size(); each function has its own
    Range range;
  };
  explicit FunctionRanges(std::vector<Range> ranges);  // in any order
  // The function that `address` is in; nothing: in none. For any thread.
  std::optional<Function> find_function(std::uint64_t address) const;
  std::size_t size() const { return ranges_.size(); }

 private:
  std::vector<Range> ranges_;  // ascending by start
};

}  // namespace tacho::symbolize
