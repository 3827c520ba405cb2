#include "report/profile/histogram.h"

#include <algorithm>
#include <numeric>

namespace tacho::report {

void Histogram::add(const RowFacts& facts, std::size_t member, std::uint64_t period) {
  std::uint64_t hash = 0;
  for (const SortKey* key : keys_) hash = mix(hash, key->identity(facts));
  const auto number = by_keys_.find_or_make(
      hash,
      [&](std::uint32_t row) {
        return std::ranges::all_of(keys_, [&](const SortKey* key) {
          return key->identity(rows_[row].facts) == key->identity(facts);
        });
      },
      [&] {
        rows_.push_back(
            {facts, std::vector<std::uint64_t>(members()), std::vector<std::uint64_t>(members())});
        return static_cast<std::uint32_t>(rows_.size() - 1);
      });
  rows_[number].periods[member] += period;
  rows_[number].samples[member] += 1;
  periods_[member] += period;
  samples_[member] += 1;
}

std::uint64_t Histogram::samples() const {
  return std::accumulate(samples_.begin(), samples_.end(), std::uint64_t{0});
}

std::uint64_t Histogram::total(std::size_t member) const {
  return counts_samples(member) ? samples_[member] : periods_[member];
}

std::uint64_t Histogram::total() const {
  std::uint64_t sum = 0;
  for (std::size_t member = 0; member < members(); ++member) sum += total(member);
  return sum;
}

std::vector<HistogramRow> Histogram::sorted_rows() const {
  std::vector<HistogramRow> rows;
  rows.reserve(rows_.size());
  for (const Row& row : rows_) {
    HistogramRow& out = rows.emplace_back(HistogramRow{row.facts, {}});
    for (std::size_t member = 0; member < members(); ++member) {
      out.weights.push_back(counts_samples(member) ? row.samples[member] : row.periods[member]);
    }
  }
  std::ranges::stable_sort(rows, [&](const HistogramRow& a, const HistogramRow& b) {
    if (a.weights != b.weights) return a.weights > b.weights;
    for (const SortKey* key : keys_) {
      if (const auto order = key->order(a.facts, b.facts); order != 0) return order < 0;
    }
    for (const SortKey* key : keys_) {
      if (const auto order = key->tie(a.facts, b.facts); order != 0) return order < 0;
    }
    return false;
  });
  return rows;
}

}  // namespace tacho::report
