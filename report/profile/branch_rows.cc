#include "report/profile/branch_rows.h"

#include <algorithm>
#include <string_view>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/profile/branch_place.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

char level_of(std::uint16_t misc) {
  constexpr std::string_view kLevels = "Hk.Hgu";
  const unsigned mode = misc & abi::kCpumodeMask;
  return mode < kLevels.size() ? kLevels[mode] : 'H';
}

constexpr unsigned kOwnAt = 8;  // the level stands below

}  // namespace

void BranchRows::add_facts(ProfileShape& shape) {
  first_ = shape.facts.size();
  const TakenBranch* const branch = &facts_->branch;
  shape.facts.emplace_back([branch](const ResolvedSample&) -> std::uint64_t { return branch->from; });
  shape.facts.emplace_back([branch](const ResolvedSample&) -> std::uint64_t { return branch->to; });
  shape.facts.emplace_back([branch](const ResolvedSample&) { return branch->flags & kBranchTypeBits; });
  shape.facts.emplace_back([branch, keeps_own = keeps_own_](const ResolvedSample&) {
    return std::uint64_t{static_cast<unsigned char>(branch->level)} |
           (keeps_own ? std::uint64_t{branch->own} << kOwnAt : 0);
  });
}

BranchRows::Known BranchRows::known(std::span<const std::uint64_t> facts) const {
  return {.from = static_cast<std::uint32_t>(facts[first_]),
          .to = static_cast<std::uint32_t>(facts[first_ + 1]),
          .own = static_cast<std::uint32_t>(facts[first_ + 3] >> kOwnAt),
          .level = static_cast<char>(facts[first_ + 3] & 0xff),
          .type_flags = facts[first_ + 2]};
}

void BranchRows::add(Profile& profile, const ResolvedSample& sample) {
  const std::size_t count = sample.raw->branch_count();
  if (count == 0) return;
  // As perf: the cycles of the newest branch are the weight of all.
  format::Sample raw = *sample.raw;
  raw.weight = std::max<std::uint64_t>(branch_cycles(raw.branch(0).flags), 1);
  ResolvedSample at_end = sample;
  at_end.raw = &raw;
  for (std::size_t i = 0; i < count; ++i) {
    const format::BranchEntry branch = raw.branch(i);
    at_end.location = &branch_place(sample, branch.to);
    at_end.place = at_end.location->number;
    facts_->branch = {.from = branch_place(sample, branch.from).number,
                      .to = at_end.place,
                      .own = sample.place,
                      .flags = branch.flags,
                      .level = level_of(raw.misc)};
    profile.add(at_end, 1);
  }
}

}  // namespace tacho::report
