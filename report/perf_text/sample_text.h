// The rare fields of a sample as perf script prints them: branches, registers, data sources, page sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Writes the branches before a sample (PERF_SAMPLE_BRANCH_STACK) on its line.
class BranchText {
 public:
  BranchText(Resolver& resolver, Names names) : resolver_(&resolver), names_(names) {}

  // Writes brstack, brstacksym or brstackoff: the first of them in `fields`.
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);

 private:
  void write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address, const Fields& fields);
  void note_used(const ResolvedSample& sample, const Fields& fields);

  Resolver* resolver_;
  Names names_;
  std::unordered_set<const symbolize::Module*> used_;  // modules with samples
};

// Rare fields of `script`: registers, branch stacks, data sources, page sizes, physical addresses, cgroups.
class SampleFieldsText {
 public:
  SampleFieldsText(Session& session, Names names);

  // The fields before the sample's address, after it, and at the end of the line. Callers first test whether
  // any of these is shown.
  static constexpr Fields kBeforeLocation{Field::DataSrc, Field::Weight, Field::InsLat};
  static constexpr Fields kAfterLocation{Field::Iregs, Field::Uregs, Field::Brstack, Field::Brstacksym,
                                         Field::Brstackoff};
  static constexpr Fields kAtEnd{Field::PhysAddr, Field::DataPageSize, Field::CodePageSize, Field::Cgroup};
  void write_before_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_after_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_at_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) const;

 private:
  void write_registers(TextBuffer& out, const format::Registers& registers);

  std::string arch_;
  std::vector<std::string> register_names_;  // padded; made when first needed
  std::size_t source_width_ = 0;             // width of the longest data source so far
  Names names_;
  BranchText branches_;
};

}  // namespace tacho::report
