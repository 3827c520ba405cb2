// The fields of a sample as perf script prints them: the start of the line, call chains, and the rare fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/container/environment.h"
#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "report/samples/source_files.h"
#include "symbolize/frame.h"

namespace tacho::report {

// The time of a sample as `script` prints it.

enum class TimeDigits : std::uint8_t { Microseconds, Nanoseconds };
enum class TimeBase : std::uint8_t { Clock, FirstLine, LineBefore };  // as recorded; --reltime; --deltatime

class TimeText {
 public:
  TimeText(TimeDigits digits, TimeBase base, std::optional<format::ClockData> clock)
      : digits_(digits), base_(base), clock_(clock) {}

  TimeBase base() const { return base_; }
  // "    5.001234: "
  void write(TextBuffer& out, std::uint64_t time);
  // "2023-11-14 22:13:20.124191 " in the reader's time zone. Only for captures with HEADER_CLOCK_DATA.
  void write_of_day(TextBuffer& out, std::uint64_t time) const;

 private:
  std::uint64_t since_base(std::uint64_t time);
  void write_second(TextBuffer& out, std::uint64_t second);

  TimeDigits digits_;
  TimeBase base_;
  std::optional<format::ClockData> clock_;
  std::uint64_t first_ = 0, before_ = 0;  // 0: no line yet
  // The text of the last second, "    5.": most lines have the same as the line before.
  std::uint64_t shown_second_ = 0;
  char second_text_[TextBuffer::kShort] = {};
  std::size_t second_size_ = 0;  // 0: none yet
};

struct LineStart {
  std::string_view comm;  // made safe already
  std::uint32_t pid = ~0U, tid = ~0U, cpu = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint16_t misc = 0;
  std::uint32_t record_type = 0;
  bool is_comm_padded = true;
};
void write_line_start(TextBuffer& out, const Fields& fields, const LineStart& start, TimeText& times);

// Prints frames as lines of perf script's call chains.

enum class SourcePath : std::uint8_t { Last, Whole };  // of a source file: file name; full path

// "SYMBOL+0xOFFSET" or "[unknown]".
void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names);
// "MODULE"
void write_module_name(TextBuffer& out, const symbolize::Frame& frame, Names names);
// " (MODULE)"
void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names);
// `before` and "FILE:LINE", or what perf prints instead, or nothing.
void write_source_line(TextBuffer& out, const symbolize::Frame& frame, Names names,
                       SourcePath path = SourcePath::Last, std::string_view before = "\n  ");
// Of kernel code, and addresses outside of any mapping.
bool is_shown_as_it_ran(const symbolize::Frame& frame);
// The address at the start of a call chain's line. Those of user code are relative to their mapping.
std::uint64_t address_in_chain(const symbolize::Frame& frame);
// TAB "ADDRESS SYMBOL+0xOFFSET (MODULE)" and a newline.
void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names,
                 SourcePath path = SourcePath::Last);

// Source lines of `script -F srccode`: a line is printed once while its thread stays there.

class SourceCode {
 public:
  SourceCode(Resolver& resolver, Names names) : files_(resolver), names_(names) {}

  // "|12       int main(void)" and a newline; nothing when the line is unknown or the one shown last.
  void write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame);

 private:
  SourceFiles files_;
  Names names_;
  std::unordered_map<const Thread*, std::pair<std::string, std::uint32_t>> shown_last_;
};

// Rare fields of `script`: registers, branch stacks, data sources, page sizes, physical addresses, cgroups.

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
