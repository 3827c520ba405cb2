#include "report/profile/branch_chains.h"

#include <algorithm>
#include <array>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/profile/branch_place.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::size_t kMostBranches = 127;  // of a sample; perf takes more for damage

bool is_mark(std::uint64_t word) { return word >= abi::kContextMax; }

// Whether the processor kept calls instead of branches, and the chain has been made of them.
bool is_of_calls(const ResolvedSample& sample, std::size_t max_frames) {
  const format::EventAttr& attr = sample.event().attr;
  if (!attr.samples(abi::kSampleBranchStack) || (attr.branch_sample_type & abi::kBranchCallStack) == 0)
    return false;
  const auto& chain = sample.raw->callchain;
  for (std::size_t i = 0; i < std::min(chain.size(), max_frames); ++i) {
    if (chain[i] == abi::kContextUser) return true;
  }
  return false;
}

}  // namespace

const Stack* BranchChains::stack_of(const ResolvedSample& sample) {
  const format::Sample& raw = *sample.raw;
  frames_.clear();
  frame_steps_.clear();
  branches_.clear();
  const bool has_branches = sample.event().attr.samples(abi::kSampleBranchStack);
  if (!has_branches || sample.has_payload_stack || is_of_calls(sample, max_frames_)) {
    if (sample.stack == nullptr) return nullptr;
    for (const std::uint32_t frame : sample.stack->frames) add(frame, 0);
    return stacks_.intern(frames_, frame_steps_);
  }
  if (raw.branch_count() <= kMostBranches) take_branches(raw);
  if (begins_with_caller_) add_unwound(sample);
  leave_out_loops();
  add_branches(sample);
  add_callers(sample);
  if (!begins_with_caller_) add_unwound(sample);
  if (begins_with_caller_) {
    std::ranges::reverse(frames_);
    std::ranges::reverse(frame_steps_);
  }
  return stacks_.intern(frames_, frame_steps_);
}

// The newest first, or read from the caller on, the oldest first.
void BranchChains::take_branches(const format::Sample& sample) {
  const std::size_t count = sample.branch_count();
  const std::size_t taken = std::min(count, max_frames_);
  for (std::size_t i = 0; i < taken; ++i)
    branches_.push_back({.entry = sample.branch(begins_with_caller_ ? count - 1 - i : i)});
}

// Branches that repeat in the same order are shown once. Where each came first is kept in a table as small
// as perf's, by the same hash, as two that meet in it hide loops.
void BranchChains::leave_out_loops() {
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
      Branch& behind = all[i + length];
      ++behind.rounds;
      behind.round_cycles = 0;
      for (std::size_t j = i; j < i + length; ++j) behind.round_cycles += branch_cycles(all[j].entry.flags);
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i),
              all.begin() + static_cast<std::ptrdiff_t>(i + length));
  }
}

void BranchChains::add_branches(const ResolvedSample& sample) {
  for (const Branch& branch : branches_) {
    const format::BranchEntry& entry = branch.entry;
    // perf names the target by the address that it came from.
    const bool has_source = entry.from != 0;
    BranchStep target{.is_target = has_source};
    if (has_source) {
      target.is_predicted = (entry.flags & kBranchPredicted) != 0;
      target.is_aborted = (entry.flags & kBranchAborted) != 0;
      target.traits = branch_traits(entry.flags, entry.from, entry.to);
    } else {
      target.cycles = static_cast<std::uint32_t>(branch_cycles(entry.flags));
    }
    add(branch_place(sample, entry.to).number, steps_.number_of(target));
    const BranchStep source{.cycles = static_cast<std::uint32_t>(branch_cycles(entry.flags)),
                            .rounds = branch.rounds,
                            .round_cycles = branch.round_cycles};
    add(branch_place(sample, entry.from).number, steps_.number_of(source));
  }
}

// How many words at the chain's start are known from branches. A return address is behind the call,
// which is no longer than 8 bytes.
std::size_t BranchChains::told_callers(const format::Sample& sample) const {
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

// As perf, which takes as many callers less as there were branches, whether these showed them or not.
void BranchChains::add_callers(const ResolvedSample& sample) {
  const auto& chain = sample.raw->callchain;
  const std::size_t less = std::min(chain.size(), branches_.size());
  const std::size_t begin = told_callers(*sample.raw), end = chain.size() - less;
  std::uint8_t mode = abi::kCpumodeUser;
  const auto set_mode = [&mode](std::uint64_t mark) {
    if (mark == abi::kContextKernel) mode = abi::kCpumodeKernel;
    if (mark == abi::kContextUser) mode = abi::kCpumodeUser;
    if (mark == abi::kContextHypervisor) mode = abi::kCpumodeHypervisor;
  };
  // Read from the caller on, a mark stands behind what it says the mode of.
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
    add(sample.locate_in(chain[at], mode).number, 0);
  }
}

// The part of the stack that was not recorded as a chain but as bytes.
void BranchChains::add_unwound(const ResolvedSample& sample) {
  if (sample.stack == nullptr || !sample.event().attr.samples(abi::kSampleStackUser)) return;
  std::size_t recorded = 0;
  for (std::size_t i = 0; i < sample.raw->callchain.size(); ++i)
    recorded += is_mark(sample.raw->callchain[i]) ? 0 : 1;
  const auto frames = sample.stack->frames;
  const auto unwound = frames.subspan(std::min(frames.size(), recorded));
  if (begins_with_caller_) {
    for (std::size_t i = unwound.size(); i-- > 0;) add(unwound[i], 0);
  } else {
    for (const std::uint32_t frame : unwound) add(frame, 0);
  }
}

}  // namespace tacho::report
