// Branches below and beside the rows: blocks of code by their cycles (--total-cycles), branch statistics.
#pragma once

#include <array>
#include <cstdint>

#include "report/decode/coded_values.h"
#include "report/output/text_output.h"
#include "report/profile/branches.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// The blocks of the functions that the rows' branches went to. `cycles` is settled; `rows`: all of
// `entries`, in the report's order.
void write_blocks(TextOutput& out, const Entries& entries, std::span<const std::uint32_t> rows,
                  BlockCycles& cycles, Resolver& resolver, const TextOptions& options);

// How branches went, by type and by distance: what perf prints below the rows of branches.

class BranchStatistics {
 public:
  void add(std::uint64_t from, std::uint64_t to, BranchType type, std::uint64_t count);
  // Nothing when no branch has a type.
  void write(TextOutput& out) const;

 private:
  std::array<std::uint64_t, BranchType::kCount> types_{}, extended_{};
  std::uint64_t forward_ = 0, backward_ = 0;  // conditional ones
  std::uint64_t cross_4k_ = 0, cross_2m_ = 0;
};

}  // namespace tacho::report
