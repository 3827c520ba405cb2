#include "report/profile/branch_rows.h"

#include <algorithm>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/profile/branches.h"
#include "report/profile/function.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr unsigned kOwnAt = 8;  // in a fact: the level is in the bits below

}  // namespace

void BranchRows::add_facts(ProfileShape& shape) {
  first_ = shape.facts.size();
  const TakenBranch* const branch = &facts_->branch;
  shape.facts.emplace_back(
      [branch](const ResolvedSample&) -> std::uint64_t { return value_of(branch->from); });
  shape.facts.emplace_back([branch](const ResolvedSample&) -> std::uint64_t { return value_of(branch->to); });
  shape.facts.emplace_back([branch](const ResolvedSample&) { return branch->flags & kBranchTypeBits; });
  shape.facts.emplace_back([branch, keeps_own = keeps_own_](const ResolvedSample&) {
    return std::uint64_t{static_cast<unsigned char>(branch->level)} |
           (keeps_own ? std::uint64_t{value_of(branch->own)} << kOwnAt : 0);
  });
}

BranchRows::Known BranchRows::known(std::span<const std::uint64_t> facts) const {
  return {.from = id_of<LocationId>(facts[first_]),
          .to = id_of<LocationId>(facts[first_ + 1]),
          .own = id_of<LocationId>(facts[first_ + 3] >> kOwnAt),
          .level = static_cast<char>(facts[first_ + 3] & 0xff),
          .type_flags = facts[first_ + 2]};
}

void BranchRows::add_branches(Profile& profile, const ResolvedSample& sample) {
  const std::size_t count = sample.fields->branch_count();
  if (count == 0) return;
  // As perf: the cycles of the newest branch are the weight of all branches.
  format::Sample fields = *sample.fields;
  fields.weight = std::max<std::uint64_t>(branch_cycles(fields.branch(0).flags), 1);
  ResolvedSample at_end = sample;
  at_end.fields = &fields;
  for (std::size_t i = 0; i < count; ++i) {
    const format::BranchEntry branch = fields.branch(i);
    at_end.location = &branch_location(sample, branch.to);
    at_end.location_id = at_end.location->id;
    facts_->branch = {.from = branch_location(sample, branch.from).id,
                      .to = at_end.location_id,
                      .own = sample.location_id,
                      .flags = branch.flags,
                      .level = level_of(static_cast<std::uint8_t>(fields.misc & abi::kCpumodeMask))};
    profile.add_sample(at_end, 1);
  }
}

}  // namespace tacho::report
