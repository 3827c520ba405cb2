// Call chains with the branches in them that the processor kept with each sample (--branch-history): the last
// ones before the sample show more of the way there than its callers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/profile/branch_steps.h"
#include "report/profile/marked_stacks.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

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

}  // namespace tacho::report
