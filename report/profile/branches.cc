#include "report/profile/branches.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"

namespace tacho::report {
namespace {

// Bits: one for each type, one for each extended type, then the others.
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

StepId BranchSteps::id_of_step(const BranchStep& step) {
  const unsigned marks =
      (step.is_target ? 1U : 0U) | (step.is_predicted ? 2U : 0U) | (step.is_aborted ? 4U : 0U);
  const std::uint64_t hash = steps_.hash()(marks, step.traits, step.cycles, step.rounds, step.round_cycles);
  return steps_.number_of(hash, step);
}

void BranchCounts::add_step(const BranchStep& step, std::uint64_t samples, bool is_first) {
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

namespace {

namespace abi = format::abi;

constexpr std::size_t kMostBranches = 127;  // perf rejects a sample with more as damaged

bool is_mark(std::uint64_t word) { return word >= abi::kContextMax; }

// Whether the processor recorded calls instead of branches (LBR call stack), from which the chain was made.
bool is_of_calls(const ResolvedSample& sample, std::size_t max_frames) {
  const format::EventAttr& attr = sample.event().attr;
  if (!attr.samples(abi::kSampleBranchStack) || (attr.branch_sample_type & abi::kBranchCallStack) == 0)
    return false;
  const auto& chain = sample.fields->callchain;
  for (std::size_t i = 0; i < std::min(chain.size(), max_frames); ++i) {
    if (chain[i] == abi::kContextUser) return true;
  }
  return false;
}

}  // namespace

const Stack* BranchChains::stack_of(const ResolvedSample& sample) {
  const format::Sample& fields = *sample.fields;
  frames_.clear();
  frame_steps_.clear();
  branches_.clear();
  const bool has_branches = sample.event().attr.samples(abi::kSampleBranchStack);
  if (!has_branches || sample.has_payload_stack || is_of_calls(sample, max_frames_)) {
    if (sample.stack == nullptr) return nullptr;
    for (const LocationId frame : sample.stack->frames) add_frame(frame);
    return stacks_.intern(frames_, frame_steps_);
  }
  if (fields.branch_count() <= kMostBranches) take_branches(fields);
  if (begins_with_caller_) add_unwound(sample);
  collapse_loops();
  add_branches(sample);
  add_callers(sample);
  if (begins_with_caller_) {
    std::ranges::reverse(frames_);
    std::ranges::reverse(frame_steps_);
  } else {
    add_unwound(sample);
  }
  return stacks_.intern(frames_, frame_steps_);
}

// Newest first; in caller order, oldest first.
void BranchChains::take_branches(const format::Sample& sample) {
  const std::size_t count = sample.branch_count();
  const std::size_t taken = std::min(count, max_frames_);
  for (std::size_t i = 0; i < taken; ++i)
    branches_.push_back({.entry = sample.branch(begins_with_caller_ ? count - 1 - i : i)});
}

// Repeated sequences of branches are shown once. First occurrences are in a hash table with perf's size and
// hash function, since collisions hide loops.
void BranchChains::collapse_loops() {
  constexpr std::uint64_t kFactor = 0x61c8864680b583eb;  // 2^64 over the golden ratio, negated
  constexpr unsigned kBits = 7;
  constexpr std::size_t kNone = ~std::size_t{0};
  std::array<std::size_t, kMostBranches> firsts;
  firsts.fill(kNone);
  auto& all = branches_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t& first = firsts[(all[i].entry.from * kFactor >> (64 - kBits)) % firsts.size()];
    if (first == kNone) {
      first = i;
      continue;
    }
    if (all[first].entry.from != all[i].entry.from) continue;
    std::size_t length = 0;
    bool is_loop = true;
    for (; first + length < i && i + length < all.size() && is_loop; ++length)
      is_loop = all[first + length].entry.from == all[i + length].entry.from;
    if (!is_loop) continue;
    if (i + length < all.size()) {
      Branch& next = all[i + length];
      ++next.rounds;
      next.round_cycles = 0;
      for (std::size_t j = i; j < i + length; ++j) next.round_cycles += branch_cycles(all[j].entry.flags);
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i),
              all.begin() + static_cast<std::ptrdiff_t>(i + length));
  }
}

void BranchChains::add_branches(const ResolvedSample& sample) {
  for (const Branch& branch : branches_) {
    const format::BranchEntry& entry = branch.entry;
    // As perf, which names the target with the symbols of its source.
    const bool has_source = entry.from != 0;
    BranchStep target{.is_target = has_source};
    if (has_source) {
      target.is_predicted = (entry.flags & kBranchPredicted) != 0;
      target.is_aborted = (entry.flags & kBranchAborted) != 0;
      target.traits = branch_traits(entry.flags, entry.from, entry.to);
    } else {
      target.cycles = static_cast<std::uint32_t>(branch_cycles(entry.flags));
    }
    add_frame(branch_location(sample, entry.to).id, steps_.id_of_step(target));
    const BranchStep source{.cycles = static_cast<std::uint32_t>(branch_cycles(entry.flags)),
                            .rounds = branch.rounds,
                            .round_cycles = branch.round_cycles};
    add_frame(branch_location(sample, entry.from).id, steps_.id_of_step(source));
  }
}

// The number of words at the chain's start that branches show already. A return address is at most 8 bytes
// after its call.
std::size_t BranchChains::shown_callers(const format::Sample& sample) const {
  constexpr std::uint64_t kLongestCall = 8;
  const std::size_t count = std::min(sample.branch_count(), max_frames_);
  if (begins_with_caller_ || sample.branch_count() > kMostBranches) return 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < count && known < sample.callchain.size(); ++i) {
    const std::uint64_t from = sample.branch(i).from, caller = sample.callchain[known];
    if (is_mark(caller) || (from < caller && from >= caller - kLongestCall)) ++known;
  }
  return known;
}

// As perf, which leaves out as many callers as there were branches, whether these showed them or not.
void BranchChains::add_callers(const ResolvedSample& sample) {
  const auto& chain = sample.fields->callchain;
  const std::size_t less = std::min(chain.size(), branches_.size());
  const std::size_t begin = shown_callers(*sample.fields), end = chain.size() - less;
  std::uint8_t mode = abi::kCpumodeUser;
  const auto set_mode = [&mode](std::uint64_t mark) {
    if (mark == abi::kContextKernel) mode = abi::kCpumodeKernel;
    if (mark == abi::kContextUser) mode = abi::kCpumodeUser;
    if (mark == abi::kContextHypervisor) mode = abi::kCpumodeHypervisor;
  };
  // In caller order, a context marker comes after the frames to which it applies.
  const auto find_mark = [&](std::size_t from) {
    for (std::size_t at = from; at-- > 0;) {
      if (is_mark(chain[at])) return set_mode(chain[at]);
    }
  };
  if (begins_with_caller_) find_mark(chain.size());
  std::size_t taken = 0;
  for (std::size_t i = begin; i < end && taken < max_frames_; ++i) {
    const std::size_t at = begins_with_caller_ ? chain.size() - 1 - i : i;
    if (is_mark(chain[at])) {
      begins_with_caller_ ? find_mark(at) : set_mode(chain[at]);
      continue;
    }
    ++taken;
    add_frame(sample.locate_in(chain[at], mode).id);
  }
}

// The part of the stack that was recorded as a copy, and unwound.
void BranchChains::add_unwound(const ResolvedSample& sample) {
  if (sample.stack == nullptr || !sample.event().attr.samples(abi::kSampleStackUser)) return;
  std::size_t recorded = 0;
  for (std::size_t i = 0; i < sample.fields->callchain.size(); ++i)
    recorded += is_mark(sample.fields->callchain[i]) ? 0 : 1;
  const auto frames = sample.stack->frames;
  const auto unwound = frames.subspan(std::min(frames.size(), recorded));
  if (begins_with_caller_) {
    for (std::size_t i = unwound.size(); i-- > 0;) add_frame(unwound[i]);
  } else {
    for (const LocationId frame : unwound) add_frame(frame);
  }
}

}  // namespace tacho::report
