// Tables about branches: blocks of code by cycles, branches by type.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "report/decode/coded_values.h"
#include "report/output/text_output.h"
#include "report/profile/block_cycles.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// --total-cycles: writes the blocks of the functions in which the rows' branches ended. `cycles` is complete;
// `rows` are all rows of `entries`, in the report's order.
void write_blocks(TextOutput& out, const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                  Resolver& resolver, const TextOptions& options);

// Branches by type and distance, which perf prints below the rows of branches.
class BranchStatistics {
 public:
  void add_branch(std::uint64_t from, std::uint64_t to, BranchType type, std::uint64_t count);
  // Writes nothing if no branch has a type.
  void write(TextOutput& out) const;

 private:
  std::array<std::uint64_t, BranchType::kCount> types_{}, extended_{};
  std::uint64_t forward_ = 0, backward_ = 0;  // conditional branches
  std::uint64_t cross_4k_ = 0, cross_2m_ = 0;
};

}  // namespace tacho::report
