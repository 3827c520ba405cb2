// The code of a page: instructions and source lines of the functions with most samples, and where in it each
// sample was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output/packed_data.h"
#include "report/profile/annotated_code.h"
#include "report/samples/session.h"
#include "report/samples/source_files.h"
#include "report/views/page/page_names.h"
#include "report/views/page/page_tree.h"

namespace tacho::report {

// Samples are counted where they were taken, as `tacho annotate` does. Bounded: kMostFunctions,
// kMostInstructions and kMostSource are the most of one page.
class PageCode {
 public:
  static constexpr std::size_t kMostFunctions = 500, kMostInstructions = 60'000,
                               kMostSource = std::size_t{4} << 20;  // bytes of source text

  // What is passed by reference must outlive this.
  PageCode(Session& session, const PageNames& names, PageParts& parts);

  // Takes each sample of the page, in their order, at the location where it counts: in general
  // sample.location_id. Samples of one address must have a location of their own (Sink::MergeBy::Address).
  void add_sample(const ResolvedSample& sample, LocationId location);
  // Reads the code. Call it after the run, before the report of missing symbols: it notes source files that
  // cannot be shown.
  void read_code();
  // After PageTree::replace_frames(), with what it was given.
  void move_frames(std::span<const std::uint32_t> frames);

  // By function: code.frame, code.rows (instructions), code.reason (a text: why there are none, or not all).
  // By instruction, of one function after another: row.size (bytes up to the next one), row.text, row.frame
  // (the function, or the call that was inlined there), row.file (1 and up; 0: not known), row.line. By file:
  // file.name. By line of source, ascending: source.file, source.line, source.text. By sample: code, its
  // instruction from 1 up; 0: none.
  std::vector<PackedColumn> columns();
  // Functions with samples without code in the page; empty: there are none.
  std::string missing_text() const;

 private:
  using FunctionKey = std::pair<const symbolize::Module*, std::uint64_t>;  // start
  struct ShownFunction {
    std::uint32_t frame = 0, reason = 0;
    std::vector<std::uint64_t> offsets;  // of its instructions, ascending
    std::uint32_t first = 0;             // instruction
  };

  std::vector<std::size_t> hottest_first(const std::vector<HitFunction>& functions) const;
  void add_function(const HitFunction& function, std::string_view reason, const AnnotatedCode& code);
  void add_instructions(const HitFunction& function, const AnnotatedCode& code);
  void add_source(const HitFunction& function, const AnnotatedCode& code);
  void add_source_line(std::uint32_t file, std::uint32_t line, std::string_view text);
  std::uint32_t file_number(std::string_view path);
  std::uint32_t instruction_at(LocationId id);

  Session& session_;
  const PageNames& names_;
  PageParts& parts_;
  SourceFiles files_;
  CodeHits hits_;
  PackedColumn locations_{"location", ColumnForm::Numbers};  // of samples
  std::vector<ShownFunction> shown_;
  std::map<FunctionKey, std::size_t> numbers_;  // in shown_
  std::vector<std::uint32_t> frames_;           // of instructions
  PackedColumn sizes_{"row.size", ColumnForm::Numbers}, texts_{"row.text", ColumnForm::Numbers},
      of_files_{"row.file", ColumnForm::Numbers}, lines_{"row.line", ColumnForm::Differences};
  std::map<std::string, std::uint32_t, std::less<>> file_numbers_;  // by path, from 1 up
  PackedColumn file_names_{"file.name", ColumnForm::Numbers};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> source_;  // by file and line: the text
  std::size_t source_bytes_ = 0;
  std::size_t without_code_ = 0, left_out_ = 0;  // functions
};

}  // namespace tacho::report
