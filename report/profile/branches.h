// Branch stacks (LBR) in a profile: the ends of branches as code addresses, the traits of branches, and call
// chains that begin with branches (--branch-history).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/records/perf_abi.h"
#include "report/profile/function_table.h"
#include "report/profile/marked_stacks.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The code address of an end of a branch, in user code or the kernel by its value: a branch may lead from one
// to the other.
inline const Location& branch_location(const ResolvedSample& sample, std::uint64_t address) {
  const Location& user = sample.locate_in(address, format::abi::kCpumodeUser);
  if (user.mapping != nullptr) return user;
  const Location& kernel = sample.locate_in(address, format::abi::kCpumodeKernel);
  return kernel.mapping != nullptr ? kernel : user;
}

// The type and the distance of a branch, one bit each: a set of them is one word.
using BranchTraits = std::uint64_t;

// The traits of one branch; none if its type or its source address is unknown.
BranchTraits branch_traits(std::uint64_t flags, std::uint64_t from, std::uint64_t to);
// "COND_FWD", "CALL", "CROSS_2M", in perf's order.
std::vector<std::string_view> trait_names(BranchTraits traits);

// One end of a branch as a frame of a call chain (--branch-history).
struct BranchStep {
  bool is_target = false;  // the target of the branch; else its source
  // Of a target.
  bool is_predicted = false, is_aborted = false;
  BranchTraits traits = 0;
  // Of a source: cycles since the branch before; for a loop that was collapsed, its iterations and the cycles
  // of one.
  std::uint32_t cycles = 0, rounds = 0;
  std::uint64_t round_cycles = 0;
  bool operator==(const BranchStep&) const = default;
};

// Interns steps: equal steps have equal ids.
class BranchSteps {
 public:
  StepId id_of_step(const BranchStep& step);
  const BranchStep& operator[](StepId id) const { return steps_[id]; }

 private:
  KeyNumbers<StepId, BranchStep> steps_;
};

// The sum of the steps of all samples that pass through a frame of a call graph.
struct BranchCounts {
  std::uint64_t branches = 0, predicted = 0, aborted = 0, cycles = 0;
  std::uint64_t rounds = 0, round_cycles = 0;
  std::uint64_t sources = 0;  // branches from here; as perf, without the one of the very first sample
  BranchTraits traits = 0;
  bool is_target = false;  // the kind of the last step

  // `is_first`: the samples are the first of this frame.
  void add_step(const BranchStep& step, std::uint64_t samples, bool is_first);
};

// Call chains that begin with the branches recorded with each sample (--branch-history): the last branches
// before the sample show more of the path than its callers.
class BranchChains {
 public:
  // `begins_with_caller`: chains start with the outermost caller. As in perf, callers that a branch shows
  // already are left out only if chains start with the leaf. `max_frames`: the maximum of branches, and the
  // maximum of callers after them.
  BranchChains(bool begins_with_caller, std::size_t max_frames)
      : begins_with_caller_(begins_with_caller), max_frames_(max_frames) {}

  // The sample's chain, leaf first like all stacks, with an id of this object: a run uses stacks of one
  // object only. Null: the sample has no chain. Valid as long as this. The sample must have all its
  // fields.
  const Stack* stack_of(const ResolvedSample& sample);

  // The step of each frame of such a stack; kNo: the frame is no end of a branch.
  std::span<const StepId> steps_of(const Stack& stack) const { return stacks_.marks_of(stack); }
  const BranchSteps& steps() const { return steps_; }

 private:
  struct Branch {
    format::BranchEntry entry;
    std::uint32_t rounds = 0;
    std::uint64_t round_cycles = 0;
  };
  void take_branches(const format::Sample& sample);
  void collapse_loops();
  void add_branches(const ResolvedSample& sample);
  void add_callers(const ResolvedSample& sample);
  void add_unwound(const ResolvedSample& sample);
  std::size_t shown_callers(const format::Sample& sample) const;
  void add_frame(LocationId location, StepId step = kNo<StepId>) {
    frames_.push_back(location);
    frame_steps_.push_back(step);
  }

  bool begins_with_caller_;
  std::size_t max_frames_;
  BranchSteps steps_;
  MarkedStacks<StepId> stacks_;  // with their frames' steps
  // The branches of the current sample, in perf's order.
  std::vector<Branch> branches_;
  std::vector<LocationId> frames_;
  std::vector<StepId> frame_steps_;
};

}  // namespace tacho::report
