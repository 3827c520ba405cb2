// Fields of a sample that few captures have: registers, branches, data sources, page sizes, processor traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/perf_text/branch_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/session.h"

namespace tacho::report {

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
