#include "report/profile/branch_steps.h"

#include "report/decode/coded_values.h"

namespace tacho::report {
namespace {

// A bit for each type, then for each extended one, then these.
constexpr unsigned kExtendedAt = BranchType::kCount, kForwardAt = 2 * BranchType::kCount,
                   kBackwardAt = kForwardAt + 1, kCrosses4kAt = kForwardAt + 2, kCrosses2mAt = kForwardAt + 3;
constexpr BranchTraits trait(unsigned at) { return BranchTraits{1} << at; }

}  // namespace

BranchTraits branch_traits(std::uint64_t flags, std::uint64_t from, std::uint64_t to) {
  const BranchType type = branch_type(flags);
  if (type.type == BranchType::kUnknown || from == 0) return 0;
  if (type.type == BranchType::kExtended && type.extended >= BranchType::kExtendedCount) return 0;
  BranchTraits traits = trait(type.type == BranchType::kExtended ? kExtendedAt + type.extended : type.type);
  if (type.type == BranchType::kConditional) traits |= trait(to > from ? kForwardAt : kBackwardAt);
  constexpr unsigned kPage = 12, kLargePage = 21;  // bits of an address within
  if (from >> kLargePage != to >> kLargePage) {
    traits |= trait(kCrosses2mAt);
  } else if (from >> kPage != to >> kPage) {
    traits |= trait(kCrosses4kAt);
  }
  return traits;
}

std::vector<std::string_view> trait_names(BranchTraits traits) {
  std::vector<std::string_view> names;
  const auto add = [&](unsigned at, std::string_view name) {
    if ((traits & trait(at)) != 0) names.push_back(name);
  };
  add(kForwardAt, "COND_FWD");
  add(kBackwardAt, "COND_BWD");
  for (unsigned type = BranchType::kConditional + 1; type < BranchType::kExtended; ++type)
    add(type, branch_type_name({type, 0}));
  for (unsigned type = 0; type < BranchType::kExtendedCount; ++type)
    add(kExtendedAt + type, branch_type_name({BranchType::kExtended, type}));
  add(kCrosses4kAt, "CROSS_4K");
  add(kCrosses2mAt, "CROSS_2M");
  return names;
}

std::uint32_t BranchSteps::number_of(const BranchStep& step) {
  const unsigned marks =
      (step.is_target ? 1U : 0U) | (step.is_predicted ? 2U : 0U) | (step.is_aborted ? 4U : 0U);
  const std::uint64_t hash = by_step_.hash(marks, step.traits, step.cycles, step.rounds, step.round_cycles);
  return by_step_.find_or_make(
      hash, [&](std::uint32_t number) { return steps_[number] == step; },
      [&] {
        steps_.push_back(step);
        return static_cast<std::uint32_t>(steps_.size() - 1);
      });
}

void BranchCounts::add(const BranchStep& step, std::uint64_t samples, bool is_first) {
  branches += samples;
  is_target = step.is_target;
  if (step.is_target) {
    predicted += step.is_predicted ? samples : 0;
    aborted += step.is_aborted ? samples : 0;
    traits |= step.traits;
    return;
  }
  cycles += step.cycles * samples;
  rounds += step.rounds * samples;
  round_cycles += step.round_cycles * samples;
  sources += samples - (is_first ? 1 : 0);
}

}  // namespace tacho::report
