// Rare fields of `script`: registers, branch stacks, data sources, page sizes, physical addresses, cgroups.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "report/output/text_output.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"

namespace tacho::report {

// The branches before a sample (PERF_SAMPLE_BRANCH_STACK), on its line.

class BranchText {
 public:
  BranchText(Resolver& resolver, Names names) : resolver_(&resolver), names_(names) {}

  // Prints one of brstack, brstacksym and brstackoff: the first that is in `fields`.
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);

 private:
  void write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address, const Fields& fields);
  void note_used(const ResolvedSample& sample, const Fields& fields);

  Resolver* resolver_;
  Names names_;
  std::unordered_set<const symbolize::Module*> used_;  // modules that samples hit
};

class SampleFieldsText {
 public:
  SampleFieldsText(Session& session, Names names);

  // The fields before the sample's address, behind it, and at the end of the line. Callers test first whether
  // any of these is shown.
  static constexpr Fields kBeforePlace{Field::DataSrc, Field::Weight, Field::InsLat};
  static constexpr Fields kAfterPlace{Field::Iregs, Field::Uregs, Field::Brstack, Field::Brstacksym,
                                      Field::Brstackoff};
  static constexpr Fields kAtEnd{Field::PhysAddr, Field::DataPageSize, Field::CodePageSize, Field::Cgroup};
  void write_before_place(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_after_place(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_at_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) const;

 private:
  void write_registers(TextBuffer& out, const format::Registers& registers);

  std::string arch_;
  std::vector<std::string> register_names_;  // padded; made when first needed
  std::size_t source_width_ = 0;             // width of the longest data source so far
  Names names_;
  BranchText branches_;
};

// "4K", "1024M"; "N/A" for 0.
std::string page_size_text(std::uint64_t size);

}  // namespace tacho::report
