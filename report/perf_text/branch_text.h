// The branches before a sample (PERF_SAMPLE_BRANCH_STACK), on its line.
#pragma once

#include <unordered_set>

#include "report/perf_text/frame_text.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

class BranchText {
 public:
  BranchText(Resolver& resolver, Names names) : resolver_(&resolver), names_(names) {}

  // brstack, or brstacksym, or brstackoff: the first of them that is shown.
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);

 private:
  void write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address, const Fields& fields);
  void note_used(const ResolvedSample& sample, const Fields& fields);

  Resolver* resolver_;
  Names names_;
  std::unordered_set<const symbolize::Module*> used_;  // some sample ran in them
};

}  // namespace tacho::report
