// What a branch's flags say (the kernel's struct perf_branch_entry, behind the two addresses).
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::report {

constexpr std::uint64_t kBranchMispredicted = 1, kBranchPredicted = 2, kBranchInTransaction = 4,
                        kBranchAborted = 8;
constexpr unsigned kBranchCyclesAt = 4;
constexpr std::uint64_t kBranchCyclesMask = 0xffff;

constexpr std::uint64_t branch_cycles(std::uint64_t flags) {
  return flags >> kBranchCyclesAt & kBranchCyclesMask;
}

// How the processor classed a branch.
struct BranchType {
  unsigned type = 0, extended = 0;  // `extended` counts when `type` is kExtended
  static constexpr unsigned kUnknown = 0, kConditional = 1, kExtended = 15, kCount = 16;
  static constexpr unsigned kExtendedCount = 8;  // of branches with names
};
BranchType branch_type(std::uint64_t flags);
// The flags' bits that branch_type() reads.
constexpr std::uint64_t kBranchTypeBits = std::uint64_t{15} << 20 | std::uint64_t{15} << 26;
// "COND"; empty where it is not known.
std::string_view branch_type_name(BranchType type);

}  // namespace tacho::report
