// How often a value fell into which bucket: powers of two, or steps of equal width.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace tacho::report {

struct Bucket {
  std::int64_t low = 0, high = 0;  // both belong to it
  std::uint64_t count = 0;
  std::uint64_t left_out = 0;  // rows before it, without values
};

class Distribution {
 public:
  // `step` 0: powers of two, as bcc counts them: 0 and 1 share the first bucket, then 2-3, 4-7, ...; negative
  // values mirror them: -1, -3 to -2, -7 to -4. With `bits` (up to kMostBits) each power of two is 2^bits
  // buckets of equal width, where it has so many values, and 0 and 1 have one each. Otherwise buckets of
  // `step` values, one of which begins at 0.
  explicit Distribution(std::uint64_t step = 0, int bits = 0)
      : step_(std::min(step, kWidestStep)), bits_(std::clamp(bits, 0, kMostBits)) {}
  static constexpr int kMostBits = 6;

  void add(std::int64_t value, std::uint64_t count = 1);

  // All buckets from the lowest to the highest that has a count, empty ones between them included (with steps
  // and parts of powers: only where they are few enough to read; others are counted).
  std::vector<Bucket> buckets() const;
  bool has_steps() const { return step_ != 0; }
  std::uint64_t total() const { return total_; }

  // The number of the bucket that a value belongs to, which grows with the values; and the bucket itself,
  // without a count.
  std::int64_t index_of(std::int64_t value) const;
  Bucket bucket_at(std::int64_t index) const;

 private:
  static constexpr std::uint64_t kWidestStep = std::uint64_t{1} << 62;
  std::uint64_t step_;
  int bits_;
  std::map<std::int64_t, std::uint64_t> counts_;  // by bucket index, ascending
  std::uint64_t total_ = 0;
};

}  // namespace tacho::report
