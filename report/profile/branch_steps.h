// What a call graph with branches in it (--branch-history) shows of each frame: how the branches went that
// ended or began there.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/samples/index_table.h"

namespace tacho::report {

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

}  // namespace tacho::report
