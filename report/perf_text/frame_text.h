// Prints frames as lines of perf script's call chains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolver.h"
#include "report/samples/source_files.h"
#include "symbolize/frame.h"

namespace tacho::report {

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

}  // namespace tacho::report
