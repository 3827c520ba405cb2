// Annotated code as people read it: jumps within the function are drawn as arrows, source lines stand before
// the instructions that they were compiled to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/annotate/shown_code.h"

namespace tacho::report {

// A row of annotated code without its numbers.
struct CodeRow {
  enum class Kind : std::uint8_t { Function, Source, Instruction };
  Kind kind = Kind::Instruction;
  std::size_t line = 0;           // the instruction's number; of others that of the one behind them
  std::uint32_t source_line = 0;  // of Source
  std::string arrows{};           // jumps that go by or end here, drawn between address and text
  std::string text{};             // made safe
};
std::vector<CodeRow> code_rows(const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

void write_code_text(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

}  // namespace tacho::report
