// A frame as a line of perf's call chains.
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

enum class SourcePath : std::uint8_t { Last, Whole };  // of a source file: its last part; with its folders

// "SYMBOL+0xOFFSET" or "[unknown]".
void write_symbol(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names);
// "MODULE"
void write_module_name(TextBuffer& out, const symbolize::Frame& frame, Names names);
// " (MODULE)"
void write_module(TextBuffer& out, const symbolize::Frame& frame, Names names);
// `before` (a line break and two blanks) and "FILE:LINE", or what perf shows in its place, or nothing.
void write_source_line(TextBuffer& out, const symbolize::Frame& frame, Names names,
                       SourcePath path = SourcePath::Last, std::string_view before = "\n  ");
// What a line of a call chain begins with. Addresses of user code are relative to their mapping.
std::uint64_t address_in_chain(const symbolize::Frame& frame);
// TAB "ADDRESS SYMBOL+0xOFFSET (MODULE)", with the line's end.
void write_frame(TextBuffer& out, const symbolize::Frame& frame, const Fields& fields, Names names,
                 SourcePath path = SourcePath::Last);

// Lines of source files as `script -F srccode` shows them: each once, as long as its thread stays there.

class SourceCode {
 public:
  SourceCode(Resolver& resolver, Names names) : files_(resolver), names_(names) {}

  // "|12       int main(void)" and the line's end; nothing where the line is not known or was shown last.
  void write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame);

 private:
  SourceFiles files_;
  Names names_;
  std::unordered_map<const Thread*, std::pair<std::string, std::uint32_t>> shown_last_;
};

}  // namespace tacho::report
