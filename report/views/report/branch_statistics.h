// How branches went, by type and by distance: what perf prints below the rows of branches.
#pragma once

#include <array>
#include <cstdint>

#include "report/decode/branch_flags.h"
#include "report/output/text_output.h"

namespace tacho::report {

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
