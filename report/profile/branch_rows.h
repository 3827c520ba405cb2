// Rows by branch (-b).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "report/profile/profile.h"
#include "report/profile/sample_facts.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Adds branch stacks to a profile: each branch is one row, whatever the address of its sample.
class BranchRows {
 public:
  // The facts of a row besides those of keys.
  struct Known {
    LocationId from{}, to{};
    LocationId own{};              // the sample's own, with `keeps_own`
    char level = '.';              // the same: its mark in reports
    std::uint64_t type_flags = 0;  // flags with nothing but the type
  };

  // `facts` must outlive this. `keeps_own`: rows also differ by the samples' own addresses.
  BranchRows(SampleFacts& facts, bool keeps_own) : facts_(&facts), keeps_own_(keeps_own) {}

  // Adds facts after those of the keys, before the profile is made. This must not move afterwards.
  void add_facts(ProfileShape& shape);
  // Adds each branch of the sample at its target; nothing if there are none.
  void add_branches(Profile& profile, const ResolvedSample& sample);
  Known known(std::span<const std::uint64_t> facts) const;

 private:
  SampleFacts* facts_;
  bool keeps_own_;
  std::size_t first_ = 0;  // index of its first fact
};

}  // namespace tacho::report
