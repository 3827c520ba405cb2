// Branch stacks as rows of a profile: every branch counts as one, wherever its sample was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "report/profile/profile.h"
#include "report/profile/sample_facts.h"

namespace tacho::report {

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

}  // namespace tacho::report
