// Branch stacks (LBR) in a profile: their ends as code addresses, how each branch went, call chains that
// begin with branches (--branch-history), rows by branch (-b), and cycles of basic blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/records/perf_abi.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/sample_facts.h"
#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// User code or the kernel's, by its address: a branch may lead from one to the other.
inline const Location& branch_place(const ResolvedSample& sample, std::uint64_t address) {
  const Location& user = sample.locate_in(address, format::abi::kCpumodeUser);
  if (user.mapping != nullptr) return user;
  const Location& kernel = sample.locate_in(address, format::abi::kCpumodeKernel);
  return kernel.mapping != nullptr ? kernel : user;
}

// What a call graph with branches in it (--branch-history) shows of each frame: how the branches went that
// ended or began there.

// How the processor classed a branch and how far it went: one bit each, so that sets of them are words.
using BranchTraits = std::uint64_t;

// Of one branch. Of a type that is not known, or without the address that it came from: none.
BranchTraits branch_traits(std::uint64_t flags, std::uint64_t from, std::uint64_t to);
// "COND_FWD", "CALL", "CROSS_2M", in perf's order.
std::vector<std::string_view> trait_names(BranchTraits traits);

// One end of a branch as a frame of a call chain.
struct BranchStep {
  bool is_target = false;  // where the branch went to; else where it came from
  // Of the target.
  bool is_predicted = false, is_aborted = false;
  BranchTraits traits = 0;
  // Of the source: cycles since the branch before, and where a loop was left out, how often it was gone
  // through and the cycles of one time.
  std::uint32_t cycles = 0, rounds = 0;
  std::uint64_t round_cycles = 0;
  bool operator==(const BranchStep&) const = default;
};

// Equal steps have equal numbers, from 1 up; 0: the frame is none of a branch.
class BranchSteps {
 public:
  std::uint32_t number_of(const BranchStep& step);
  const BranchStep& operator[](std::uint32_t number) const { return steps_[number]; }

 private:
  std::vector<BranchStep> steps_{BranchStep()};
  IndexTable by_step_;
};

// What the steps of all samples that pass through a frame of a call graph add up to.
struct BranchCounts {
  std::uint64_t branches = 0, predicted = 0, aborted = 0, cycles = 0;
  std::uint64_t rounds = 0, round_cycles = 0;
  std::uint64_t sources = 0;  // branches that came from here, without that of the very first sample, as perf
  BranchTraits traits = 0;
  bool is_target = false;  // what the last step was

  // `is_first`: the samples are the first that came to this frame.
  void add(const BranchStep& step, std::uint64_t samples, bool is_first);
};

// Call chains with the branches in them that the processor kept with each sample (--branch-history): the last
// ones before the sample show more of the way there than its callers do.

class BranchChains {
 public:
  // `begins_with_caller`: chains are read from the outermost caller on. perf's chains differ by that: callers
  // that a branch shows already are left out only where they are read from the leaf on. `max_frames`: at
  // most so many branches, and so many callers behind them.
  BranchChains(bool begins_with_caller, std::size_t max_frames)
      : begins_with_caller_(begins_with_caller), max_frames_(max_frames) {}

  // The sample's chain, leaf first like all stacks, with numbers of its own: a run takes all stacks from
  // here, or none. Null: it has none. Valid as long as this. The sample must have come with all that it
  // holds.
  const Stack* stack_of(const ResolvedSample& sample);

  // Of each frame of such a stack, by its number.
  std::span<const std::uint32_t> steps_of(const Stack& stack) const { return stacks_.words_of(stack); }
  const BranchSteps& steps() const { return steps_; }

 private:
  struct Branch {
    format::BranchEntry entry;
    std::uint32_t rounds = 0;
    std::uint64_t round_cycles = 0;
  };
  void take_branches(const format::Sample& sample);
  void leave_out_loops();
  void add_branches(const ResolvedSample& sample);
  void add_callers(const ResolvedSample& sample);
  void add_unwound(const ResolvedSample& sample);
  std::size_t told_callers(const format::Sample& sample) const;
  void add(std::uint32_t location, std::uint32_t step) {
    frames_.push_back(location);
    frame_steps_.push_back(step);
  }

  bool begins_with_caller_;
  std::size_t max_frames_;
  BranchSteps steps_;
  MarkedStacks stacks_;  // with their frames' steps
  // Of the sample at hand, in perf's order.
  std::vector<Branch> branches_;
  std::vector<std::uint32_t> frames_, frame_steps_;
};

// Branch stacks as rows of a profile: every branch counts as one, wherever its sample was taken.

class BranchRows {
 public:
  // What is known of a row, beside the facts of keys.
  struct Known {
    std::uint32_t from = 0, to = 0;  // locations
    std::uint32_t own = 0;           // the sample's, with `keeps_own`
    char level = '.';                // likewise: how report marks it
    std::uint64_t type_flags = 0;    // flags, of which only the type is set
  };

  // `facts` must outlive this. `keeps_own`: rows are of samples' own places as well.
  BranchRows(SampleFacts& facts, bool keeps_own) : facts_(&facts), keeps_own_(keeps_own) {}

  // Behind the facts of the keys, before the profile is made; this must stay where it is from then on.
  void add_facts(ProfileShape& shape);
  // Each branch of the sample, at the place that it went to; nothing where there are none.
  void add(Profile& profile, const ResolvedSample& sample);
  Known known(std::span<const std::uint64_t> facts) const;

 private:
  SampleFacts* facts_;
  bool keeps_own_;
  std::size_t first_ = 0;  // where its facts begin
};

// Cycles of blocks of code: of what ran from the target of a branch to where the next one was taken. The
// processor records them with each branch that it keeps.

// What ended at one place of a function. Of blocks that end there, the longest inside the function
// gives the start; where none does, it is the function's.
struct CycleBlock {
  std::uint64_t start = 0, end = 0;        // of the function's bytes
  std::uint64_t cycles = 0, branches = 0;  // of all that ended there; branches > 0
  Location last{};                         // where it ends
};

class BlockCycles {
 public:
  // `knows_starts`: every branch was kept, so that a block begins where the branch before went to.
  explicit BlockCycles(bool knows_starts) : knows_starts_(knows_starts) {}

  // All branches of a sample; those of one whose newest has no cycles are left out, as perf does.
  void add(const ResolvedSample& sample);
  // Gathers the blocks of each function: after the last sample, before what follows.
  void settle(Resolver& resolver);

  // Of all branches, those in no function included.
  std::uint64_t total() const { return total_; }
  // By their ends; none where no block ended in the function.
  std::vector<CycleBlock> blocks_of(const Function& function);

 private:
  static constexpr std::uint32_t kNone = IndexTable::kNone;
  // Branches from one place, after one that went to another.
  struct Way {
    std::uint32_t start = kNone, end = 0;  // numbers of places
    std::uint64_t cycles = 0, branches = 0;
  };
  struct Code {  // a function, by its address
    const symbolize::Module* module = nullptr;
    std::uint64_t start = 0, end = 0;
    bool operator==(const Code&) const = default;
  };
  struct Ended {
    std::uint32_t code = 0;  // in codes_
    bool has_start = false;
    CycleBlock block;
  };
  std::uint32_t code_of(const Code& code);
  void take(Resolver& resolver, const Way& way);

  bool knows_starts_;
  std::uint64_t total_ = 0;
  std::vector<Way> ways_;
  IndexTable by_way_;
  std::vector<Code> codes_;
  IndexTable by_code_;
  std::vector<Ended> ended_;  // sorted by function and end, when settled
  IndexTable by_end_;
};

}  // namespace tacho::report
