// Fields of a sample that few captures have: registers, branches, data sources, page sizes, processor traces.
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

  // brstack, or brstacksym, or brstackoff: the first of them that is shown.
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);

 private:
  void write_end(TextBuffer& out, const ResolvedSample& sample, std::uint64_t address, const Fields& fields);
  void note_used(const ResolvedSample& sample, const Fields& fields);

  Resolver* resolver_;
  Names names_;
  std::unordered_set<const symbolize::Module*> used_;  // some sample ran in them
};

class SampleFieldsText {
 public:
  SampleFieldsText(Session& session, Names names);

  // What stands before the address, between it and the place, behind the place, and at the line's end. Which
  // fields these are: before calling, ask whether any is shown.
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
  std::size_t source_width_ = 0;             // of the longest data source so far
  Names names_;
  BranchText branches_;
};

// "4K", "1024M"; "N/A" for 0.
std::string page_size_text(std::uint64_t size);

}  // namespace tacho::report
