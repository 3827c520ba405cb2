#include "report/profile/distribution.h"

#include <bit>
#include <string>
#include <utility>

namespace tacho::report {

namespace {

constexpr Int128 kMostEmptyRows = 20;  // a longer gap is left out

std::uint64_t magnitude_of(Int128 value) { return static_cast<std::uint64_t>(value < 0 ? -value : value); }

// Parts of powers of two. Numbers below 2^bits are buckets by themselves, and each power from there on
// continues the numbering.
std::int64_t part_of(std::uint64_t magnitude, int bits) {
  const auto exponent = static_cast<int>(std::bit_width(magnitude | 1)) - 1;
  if (exponent < bits) return static_cast<std::int64_t>(magnitude);
  const auto begin = static_cast<std::int64_t>(exponent - bits) << bits;
  return begin + static_cast<std::int64_t>(magnitude >> (exponent - bits));
}

// The first and the last value.
std::pair<std::uint64_t, std::uint64_t> values_of_part(std::int64_t part, int bits) {
  const auto number = static_cast<std::uint64_t>(part);
  if (number >> bits == 0) return {number, number};
  const auto shift = static_cast<int>((number >> bits) - 1);
  const std::uint64_t low = (number - (static_cast<std::uint64_t>(shift) << bits)) << shift;
  return {low, low + (std::uint64_t{1} << shift) - 1};
}

}  // namespace

// Powers of two: 0 for values 0 and 1, n for 2^n to 2^(n+1)-1, -(n+1) for the mirror image of 2^n.
Int128 Distribution::index_of(Int128 value) const {
  value = std::clamp(value, kLowest, kHighest);
  if (step_ == 0 && bits_ != 0) {
    const std::int64_t part = part_of(magnitude_of(value), bits_);
    return value < 0 ? -part : part;
  }
  if (step_ == 0) {
    const auto exponent = static_cast<std::int64_t>(std::bit_width(magnitude_of(value) | 1)) - 1;
    return value < 0 ? -exponent - 1 : exponent;
  }
  const Int128 step = step_;
  return value / step - (value % step < 0 ? 1 : 0);  // rounds down, towards the lower row
}

Bucket Distribution::bucket_at(Int128 index) const {
  const auto limited = [](Int128 low, Int128 high) {
    return Bucket{std::max(low, kLowest), std::min(high, kHighest)};
  };
  if (const Int128 step = step_; step != 0) return limited(index * step, index * step + step - 1);
  if (bits_ != 0) {
    const auto [low, high] = values_of_part(static_cast<std::int64_t>(index < 0 ? -index : index), bits_);
    return index < 0 ? limited(-Int128{high}, -Int128{low}) : limited(low, high);
  }
  if (index == 0) return {0, 1};
  const auto exponent = static_cast<int>(index > 0 ? index : -index - 1);
  const Int128 low = Int128{1} << exponent, high = 2 * low - 1;
  return index > 0 ? limited(low, high) : limited(-high, -low);
}

void Distribution::add_value(Int128 value, std::uint64_t count) {
  counts_[index_of(value)] += count;
  total_ += count;
}

std::vector<Bucket> Distribution::buckets() const {
  std::vector<Bucket> rows;
  if (counts_.empty()) return rows;
  Int128 next = counts_.begin()->first;
  for (const auto& [index, count] : counts_) {
    const bool is_whole_power = step_ == 0 && bits_ == 0;
    if (is_whole_power || index - next <= kMostEmptyRows) {
      for (; next < index; ++next) rows.push_back(bucket_at(next));
    }
    rows.push_back(bucket_at(index));
    rows.back().count = count;
    rows.back().left_out = static_cast<std::uint64_t>(index - next);
    next = index + 1;
  }
  return rows;
}

}  // namespace tacho::report
