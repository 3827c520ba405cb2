// The forms of annotated code: text with arrows and source lines, the layout of `perf annotate`, and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/annotated_code.h"
#include "report/samples/source_files.h"

namespace tacho::report {

// One annotated function as the forms of `tacho annotate` get it, and the order of its source lines.

// What a count is a share of, and which number of it counts.
enum class ShareOf : std::uint8_t { Function, Everything };
enum class ShareBy : std::uint8_t { Period, Samples };

struct CodeOptions {
  ShareOf of = ShareOf::Function;
  ShareBy by = ShareBy::Period;
  enum class Column : std::uint8_t { Percent, Samples, Period } column = Column::Percent;
  bool has_source = true;  // lines of source between the instructions
  bool has_bytes = false;  // --asm-raw
  bool has_full_paths = false;
  bool has_line_summary = false;  // -l
  bool has_colour = false;
  Names names = Names::Safe;
};

struct ShownCode {
  const HitFunction& function;
  const AnnotatedCode& code;
  std::string event_name;            // of a group all names
  std::vector<std::string> events;   // each of them
  std::vector<HitCount> totals;      // of the function, by event
  std::vector<HitCount> everything;  // of all samples, by event

  // Of one event's count, in percent.
  double percent(std::size_t event, const HitCount& count, const CodeOptions& options) const {
    const HitCount& all = options.of == ShareOf::Function ? totals[event] : everything[event];
    const auto of = [&](const HitCount& one) {
      return options.by == ShareBy::Period ? one.period : one.samples;
    };
    return of(all) == 0 ? 0 : 100.0 * static_cast<double>(of(count)) / static_cast<double>(of(all));
  }
};

// What stands before an instruction: the lines of source up to the one it comes from, each once, and where
// another function's code begins. As objdump -S has it: up to four lines before the first one too.
class SourceWalk {
 public:
  struct Step {
    bool enters_function = false;  // another one than the instruction before, as calls are inlined
    bool names_line = false;       // another line
    std::string_view file;         // with its folder; empty: not known
    std::uint32_t line = 0;
    std::uint32_t first = 1, last = 0;  // lines of the file that come here; none when first > last
  };
  explicit SourceWalk(SourceFiles& files) : files_(&files) {}
  Step next(const CodeLine& line);
  // Line `number` of a file, from 1 up; empty when it has fewer. Of a line whose text the capture has that
  // text.
  std::string_view text(std::string_view file, std::uint32_t number) const;

 private:
  struct Printed {
    std::uint32_t last_line = 0, highest = 0;
  };
  SourceFiles* files_;
  std::map<std::string_view, Printed> printed_;
  std::string_view function_, function_linker_, source_;
  std::uint32_t line_ = 0;
  bool is_first_ = true;
};

// "call   1139 <sum>": the instruction and what it names.
std::string instruction_text(const CodeLine& line, std::size_t mnemonic_width);
// "f3 0f 1e fa".
std::string bytes_text(format::Bytes bytes);
// The name of a function with its parameters where they are known, as objdump -C has it.
std::string whole_name(std::string_view name, std::string_view linker_name);
// The same as objdump has it before the code of a function: names that were not mangled get "()".
std::string heading_name(std::string_view name, std::string_view linker_name);
// The last part of a path, or all of it.
std::string_view shown_path(std::string_view path, const CodeOptions& options);

// Annotated code as people read it: jumps within the function are drawn as arrows, source lines stand before
// the instructions that they were compiled to.

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

// Annotated code in the layout of `perf annotate --stdio` (perf 6.1): its columns, counters and blanks; the
// texts of instructions are capstone's.

void write_perf_layout(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                       const CodeOptions& options);

// Annotated code for programs: a JSON object a function, on a line of its own.

void write_code_json(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

}  // namespace tacho::report
