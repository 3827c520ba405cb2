// The forms of annotated code: text with arrows and source lines, the layout of `perf annotate`, and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/annotated_code.h"
#include "report/samples/source_files.h"

namespace tacho::report {

// The total that is 100 %, and the number that is counted.
enum class ShareOf : std::uint8_t { Function, Everything };
enum class ShareBy : std::uint8_t { Period, Samples };

struct CodeOptions {
  ShareOf of = ShareOf::Function;
  ShareBy by = ShareBy::Period;
  enum class Column : std::uint8_t { Percent, Samples, Period } column = Column::Percent;
  bool has_source = true;  // source lines between the instructions
  bool has_bytes = false;  // --asm-raw
  bool has_full_paths = false;
  bool has_line_summary = false;  // -l
  bool has_colour = false;
  bool has_offsets = false;  // jumps within the function name their target by its offset alone
  Names names = Names::Safe;
};

// One annotated function, for all forms.
struct ShownCode {
  const HitFunction& function;
  const AnnotatedCode& code;
  std::string event_name;            // for a group, all names
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

// The lines before each instruction, as objdump -S has them: the source lines up to its own, each once (up to
// four before the first one), and a heading where code of another function begins.
class SourceWalk {
 public:
  struct Step {
    bool enters_function = false;  // the instruction before is of another function: calls are inlined
    bool names_line = false;       // the instruction before is of another source line
    std::string_view file;         // with its folder; empty: unknown
    std::uint32_t line = 0;
    std::uint32_t first = 1, last = 0;  // source lines to print here; none if first > last
  };
  SourceWalk(SourceFiles& files, const ShownCode& shown, const CodeOptions& options);
  Step next_step(const CodeLine& line);
  // Line `number` of a file, from 1 up; empty: it has fewer. The capture's text takes precedence over the
  // file.
  std::string_view text(std::string_view file, std::uint32_t number) const;

 private:
  struct Printed {
    std::uint32_t last_line = 0, highest = 0;
  };
  SourceFiles* files_;  // null: no source is shown
  const symbolize::Module* module_;
  std::map<std::string_view, Printed> printed_;
  std::string_view function_, function_linker_, source_;
  std::uint32_t line_ = 0;
  bool is_first_ = true;
};

// The name of a function with its parameters, if they are known, as objdump -C prints it.
std::string whole_name(std::string_view name, std::string_view linker_name);

// "Average IPC: 0.77, coverage: 50.0 %", of code with has_cycles.
std::string cycles_text(const AnnotatedCode& code);

// A line of annotated code without its numbers.
struct CodeRow {
  enum class Kind : std::uint8_t { Function, Source, Instruction };
  Kind kind = Kind::Instruction;
  std::size_t line = 0;           // of the instruction; for other lines, of the next instruction
  std::uint32_t source_line = 0;  // of Source
  std::string arrows{};           // the jumps that pass or end here, drawn between address and text
  std::string text{};             // made safe
};
std::vector<CodeRow> code_rows(const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

// Annotated code as text: jumps within the function are drawn as arrows, and source lines are before the
// instructions that they were compiled to.
void write_code_text(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

// Annotated code in the layout of `perf annotate --stdio` (perf 6.1): its columns, counters and blanks; the
// texts of instructions are capstone's.
void write_perf_layout(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                       const CodeOptions& options);

// Annotated code for programs: one JSON object a line for each function.
void write_code_json(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

}  // namespace tacho::report
