// Weights by sort keys: the rows of a report. Events of a group share their rows, each with a weight of its
// own.
#pragma once

#include <cstdint>
#include <vector>

#include "report/profile/sort_key.h"
#include "report/samples/index_table.h"

namespace tacho::report {

struct HistogramRow {
  RowFacts facts;
  std::vector<std::uint64_t> weights;  // by member
};

class Histogram {
 public:
  Histogram(std::vector<const SortKey*> keys, std::size_t members)
      : keys_(std::move(keys)), samples_(members), periods_(members) {}

  void add(const RowFacts& facts, std::size_t member, std::uint64_t period);

  const std::vector<const SortKey*>& keys() const { return keys_; }
  std::size_t members() const { return samples_.size(); }
  std::uint64_t samples() const;
  // Sum of weights of one member, and of all.
  std::uint64_t total(std::size_t member) const;
  std::uint64_t total() const;
  // Heaviest first, the first member decides before the second; ties by the keys.
  std::vector<HistogramRow> sorted_rows() const;

 private:
  // Events whose periods are all 0 (BPF output) are weighed by their samples.
  bool counts_samples(std::size_t member) const { return periods_[member] == 0; }
  struct Row {
    RowFacts facts;
    std::vector<std::uint64_t> periods, samples;
  };
  std::vector<const SortKey*> keys_;
  std::vector<std::uint64_t> samples_, periods_;
  IndexTable by_keys_;
  std::vector<Row> rows_;
};

}  // namespace tacho::report
