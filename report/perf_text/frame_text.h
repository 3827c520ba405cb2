// A frame of a call chain as perf script prints it: symbol, module and line of source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/source_files.h"
#include "symbolize/frame.h"

namespace tacho::report {

enum class SourcePath : std::uint8_t { Last, Whole };  // of a source file: file name; full path

// Writes "SYMBOL+0xOFFSET" or "[unknown]".
void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names);
// Writes "MODULE".
void write_module_name(TextBuffer& out, const symbolize::Frame& frame, Names names);
// Writes " (MODULE)".
void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names);
// Writes `before` and "FILE:LINE", or what perf prints instead of these, or nothing.
void write_source_line(TextBuffer& out, const symbolize::Frame& frame, Names names,
                       SourcePath path = SourcePath::Last, std::string_view before = "\n  ");
// Whether the address is printed as a runtime address: kernel code, and code outside of any mapping.
bool is_shown_as_it_ran(const symbolize::Frame& frame);
// The address at the start of a call chain's line: of user code, the address in its file.
std::uint64_t address_in_chain(const symbolize::Frame& frame);
// Writes TAB "ADDRESS SYMBOL+0xOFFSET (MODULE)" and a newline.
void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names,
                 SourcePath path = SourcePath::Last);

// Writes source lines (script -F srccode). A line is not repeated while its thread stays on it.
class SourceCode {
 public:
  SourceCode(Resolver& resolver, Names names) : files_(resolver), names_(names) {}

  // Writes "|12       int main(void)" and a newline; nothing for an unknown line, or the one written last.
  void write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame);

 private:
  SourceFiles files_;
  Names names_;
  std::unordered_map<const Thread*, std::pair<std::string, std::uint32_t>> shown_last_;
};

}  // namespace tacho::report
