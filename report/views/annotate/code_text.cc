#include "report/views/annotate/code_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "symbolize/names/demangle.h"

namespace tacho::report {

SourceWalk::SourceWalk(SourceFiles& files, const ShownCode& shown, const CodeOptions& options)
    : files_(options.has_source ? &files : nullptr), module_(shown.function.module) {
  if (files_ == nullptr) return;
  // A line number beyond a file's end shows that the file is another text, so no line of it is shown.
  for (const CodeLine& line : shown.code.lines)
    if (!line.file.empty() && line.line != 0 && line.source.empty())
      (void)files_->text_of(module_, line.file, line.line);
}

SourceWalk::Step SourceWalk::next_step(const CodeLine& line) {
  Step step;
  const bool is_known = !line.file.empty() && line.line != 0;
  // Two instances of a generic function may have the same short name.
  const bool is_other = line.function != function_ || line.function_linker != function_linker_;
  step.enters_function = !line.function.empty() && (is_first_ || is_other);
  if (step.enters_function) line_ = 0;
  is_first_ = is_first_ && line.function.empty();
  if (!line.function.empty()) {
    function_ = line.function;
    function_linker_ = line.function_linker;
  }
  if (!is_known) return step;
  step.file = line.file;
  step.line = line.line;
  step.names_line = line.line != line_;
  line_ = line.line;
  source_ = line.source;
  if (!source_.empty()) {
    if (step.names_line) step.first = step.last = line.line;
    return step;
  }
  if (files_ == nullptr) return step;
  const std::size_t count = files_->text_of(module_, line.file, line.line).lines();
  if (count == 0) return step;
  Printed& printed = printed_[line.file];
  if (line.line == printed.last_line) return step;
  constexpr std::uint32_t kBefore = 5;
  std::uint32_t first = line.line > kBefore ? line.line - kBefore : 1;
  if (printed.highest >= first) first = printed.highest < line.line ? printed.highest + 1 : line.line;
  printed.highest = std::max(printed.highest, line.line);
  printed.last_line = line.line;
  step.first = first;
  step.last = static_cast<std::uint32_t>(std::min<std::size_t>(line.line, count));
  return step;
}

std::string_view SourceWalk::text(std::string_view file, std::uint32_t number) const {
  if (!source_.empty() && number == line_) return source_;
  return files_ == nullptr ? std::string_view() : files_->text_of(module_, file, number).line(number);
}

namespace {

std::optional<std::string> demangled(std::string_view name, std::string_view linker_name) {
  const bool was_mangled = !linker_name.empty() && name != linker_name;
  return was_mangled ? symbolize::demangle(linker_name, symbolize::NameForm::Whole) : std::nullopt;
}

}  // namespace

std::string whole_name(std::string_view name, std::string_view linker_name) {
  return demangled(name, linker_name).value_or(std::string(name));
}

namespace {

// The heading that objdump prints before a function: names that were not mangled get "()".
std::string heading_name(std::string_view name, std::string_view linker_name) {
  return demangled(name, linker_name).value_or(std::string(name) + "()");
}

// The last part of a path, or all of it with -P.
std::string_view shown_path(std::string_view path, const CodeOptions& options) {
  return options.has_full_paths ? path : path.substr(path.rfind('/') + 1);
}

// "f3 0f 1e fa".
std::string bytes_text(format::Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  return text;
}

using Column = CodeOptions::Column;

constexpr std::size_t kMostArrows = 6;  // in columns next to each other; further jumps have no arrow
constexpr std::string_view kDim = "\033[2m", kPlain = "\033[m";

// The heading of the numbers.
std::string_view column_name(Column column) {
  return column == Column::Percent ? "Percent" : column == Column::Samples ? "Samples" : "Period";
}

// Digits of the highest address of a function, in hexadecimal.
std::size_t digits_of(const AnnotatedCode& code) {
  return code.lines.empty() ? 1 : fmt::format("{:x}", code.address + code.lines.back().offset).size();
}

// All jumps to one instruction of the function, drawn as one line with several starts.
struct Arrow {
  std::size_t target = 0;            // index of a line
  std::size_t first = 0, last = 0;   // indices of the outermost lines
  std::size_t column = kMostArrows;  // counted from the text to the left; kMostArrows: no room
  std::set<std::size_t> sources;     // indices of lines
};

std::vector<Arrow> arrows_of(const AnnotatedCode& code) {
  std::map<std::size_t, Arrow> by_target;
  for (std::size_t i = 0; i < code.lines.size(); ++i) {
    const DisassembledInstruction& instruction = code.lines[i].instruction;
    if (instruction.kind != InstructionKind::Jump || !instruction.target) continue;
    const std::uint64_t offset = *instruction.target - code.address;
    const auto target = std::ranges::lower_bound(code.lines, offset, {}, &CodeLine::offset);
    if (target == code.lines.end() || target->offset != offset) continue;
    const auto number = static_cast<std::size_t>(target - code.lines.begin());
    Arrow& arrow = by_target[number];
    if (arrow.sources.empty()) arrow.target = arrow.first = arrow.last = number;
    arrow.sources.insert(i);
    arrow.first = std::min(arrow.first, i);
    arrow.last = std::max(arrow.last, i);
  }
  std::vector<Arrow> arrows;
  for (auto& [target, arrow] : by_target) arrows.push_back(std::move(arrow));
  return arrows;
}

// Short arrows are next to the text, long ones around them.
void give_columns(std::vector<Arrow>& arrows) {
  std::vector<Arrow*> by_length;
  for (Arrow& arrow : arrows) by_length.push_back(&arrow);
  std::ranges::stable_sort(by_length, {}, [](const Arrow* arrow) { return arrow->last - arrow->first; });
  std::map<std::size_t, std::size_t> taken[kMostArrows];  // first line -> last line
  for (Arrow* const arrow : by_length) {
    for (std::size_t column = 0; column < kMostArrows; ++column) {
      auto& lines = taken[column];
      const auto next = lines.upper_bound(arrow->last);
      const bool is_free = next == lines.begin() || std::prev(next)->second < arrow->first;
      if (!is_free) continue;
      lines.emplace(arrow->first, arrow->last);
      arrow->column = column;
      break;
    }
  }
}

// Draws the arrows between address and text.
class Arrows {
 public:
  explicit Arrows(const AnnotatedCode& code) : arrows_(arrows_of(code)) {
    give_columns(arrows_);
    for (const Arrow& arrow : arrows_)
      if (arrow.column < kMostArrows) width_ = std::max(width_, arrow.column + 1);
    std::ranges::sort(arrows_, {}, &Arrow::first);
  }
  // The text before an instruction. Call it with ascending numbers.
  std::string before(std::size_t line) {
    while (next_ < arrows_.size() && arrows_[next_].first <= line) {
      const Arrow& arrow = arrows_[next_++];
      if (arrow.column < kMostArrows) active_[arrow.column] = &arrow;
    }
    std::string text;
    bool has_end = false;  // an arrow from further left ends at this instruction
    bool is_target = false;
    for (std::size_t column = width_; column-- > 0;) {
      const Arrow*& arrow = active_[column];
      if (arrow != nullptr && arrow->last < line) arrow = nullptr;
      if (arrow == nullptr) {
        text += has_end ? "─" : " ";
      } else if (arrow->target == line || arrow->sources.contains(line)) {
        const bool goes_up = line > arrow->first, goes_down = line < arrow->last;
        text += goes_up && goes_down ? "├" : goes_up ? "└" : goes_down ? "┌" : "─";
        has_end = true;
        is_target = is_target || arrow->target == line;
      } else {
        text += has_end ? "┼" : "│";
      }
    }
    if (width_ == 0) return text;
    return text + (is_target ? "►" : has_end ? "─" : " ") + ' ';
  }
  // The text before a source line above instruction `line`. Call it before that instruction's before().
  std::string through(std::size_t line) const {
    std::string text;
    for (std::size_t column = width_; column-- > 0;) {
      const Arrow* const arrow = active_[column];
      text += arrow != nullptr && arrow->last >= line ? "│" : " ";
    }
    return width_ == 0 ? text : text + "  ";
  }

 private:
  std::vector<Arrow> arrows_;
  std::size_t next_ = 0, width_ = 0;
  const Arrow* active_[kMostArrows] = {};
};

// The lines of one function, in order.
class CodeRows {
 public:
  CodeRows(const ShownCode& shown, SourceFiles& files, const CodeOptions& options)
      : shown_(shown), files_(files), options_(options), arrows_(shown.code) {
    for (const CodeLine& line : shown.code.lines) {
      constexpr std::size_t kWidest = 9;
      mnemonic_ = std::max(mnemonic_, std::min(line.instruction.mnemonic.size(), kWidest));
      bytes_ = std::max(bytes_, 3 * line.bytes.size());
    }
  }

  void walk(const std::function<void(const CodeRow&)>& visit) {
    SourceWalk walk(files_, shown_, options_);
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      walk_source(walk, i, visit);
      visit(instruction(i));
    }
  }

 private:
  void walk_source(SourceWalk& walk, std::size_t number, const std::function<void(const CodeRow&)>& visit) {
    const CodeLine& line = shown_.code.lines[number];
    const SourceWalk::Step step = walk.next_step(line);
    if (!options_.has_source) return;
    CodeRow row{.kind = CodeRow::Kind::Function, .line = number, .arrows = arrows_.through(number)};
    if (step.enters_function) {
      row.text = printable(heading_name(line.function, line.function_linker), options_.names) + ":";
      if (!step.file.empty()) row.text += "  " + printable(shown_path(step.file, options_), options_.names);
      visit(row);
    }
    row.kind = CodeRow::Kind::Source;
    for (std::uint32_t at = step.first; at <= step.last; ++at) {
      row.source_line = at;
      row.text = printable(without_tabs(walk.text(step.file, at)), options_.names);
      visit(row);
    }
    // Stripped BPF programs have line numbers only.
    const bool is_bpf = shown_.function.module->kind == symbolize::ModuleKind::Bpf;
    if (!is_bpf || !step.names_line || step.first <= step.last) return;
    row.source_line = step.line;
    row.text = printable(shown_path(step.file, options_), options_.names);
    visit(row);
  }

  bool stays_inside(const DisassembledInstruction& jump) const {
    return *jump.target - shown_.code.address < shown_.code.size;
  }

  // The direction of a jump: up or down in the function, out of it, or back to the caller.
  std::string_view mark(const CodeLine& line) const {
    const DisassembledInstruction& instruction = line.instruction;
    if (instruction.kind == InstructionKind::Return) return "← ";
    if (instruction.kind == InstructionKind::Call) return "→ ";
    if (instruction.kind != InstructionKind::Jump) return "  ";
    if (!instruction.target || !stays_inside(instruction)) return "→ ";
    return *instruction.target > instruction.address ? "↓ " : "↑ ";
  }

  CodeRow instruction(std::size_t number) {
    const CodeLine& line = shown_.code.lines[number];
    CodeRow row{.kind = CodeRow::Kind::Instruction, .line = number, .arrows = arrows_.before(number)};
    if (options_.has_bytes) row.text += fmt::format("{:<{}} ", bytes_text(line.bytes), bytes_);
    row.text += mark(line);
    const DisassembledInstruction& one = line.instruction;
    const bool is_inside = one.kind == InstructionKind::Jump && one.target && stays_inside(one);
    row.text += is_inside && options_.has_offsets
                    ? fmt::format("{:<{}} {:x}", one.mnemonic, mnemonic_, *one.target - shown_.code.address)
                    : printable(instruction_text(line, mnemonic_), options_.names);
    return row;
  }

  const ShownCode& shown_;
  SourceFiles& files_;
  const CodeOptions& options_;
  Arrows arrows_;
  std::size_t mnemonic_ = 4, bytes_ = 0;
};

class CodeText {
 public:
  CodeText(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options)
      : out_(out),
        shown_(shown),
        files_(files),
        options_(options),
        cell_width_(options.column == Column::Period ? 14 : 9),
        address_width_(std::max<std::size_t>(digits_of(shown.code), 7)) {}

  void write() {
    write_title();
    CodeRows(shown_, files_, options_).walk([this](const CodeRow& row) {
      row.kind == CodeRow::Kind::Instruction ? write_instruction(row) : write_source(row);
    });
  }

 private:
  void write_title() {
    for (std::size_t event = 0; event < shown_.events.size(); ++event) {
      const HitCount& mine = shown_.totals[event];
      const HitCount& all = shown_.everything[event];
      const bool has_period = all.period != 0;
      const double share =
          has_period         ? 100.0 * static_cast<double>(mine.period) / static_cast<double>(all.period)
          : all.samples == 0 ? 0
                             : 100.0 * static_cast<double>(mine.samples) / static_cast<double>(all.samples);
      out_.text(fmt::format("# {} ({}): {:.2f} % of {}, {} samples\n",
                            printable(shown_.function.name, options_.names),
                            printable(shown_.function.module->path, options_.names), share,
                            printable(shown_.events[event], options_.names), mine.samples));
    }
    if (shown_.code.has_cycles) out_.text("# " + cycles_text(shown_.code) + '\n');
    std::string head = "#";
    for (std::size_t event = 0; event < shown_.events.size(); ++event)
      head += fmt::format("{:>{}}", column_name(options_.column), cell_width_ - (event == 0 ? 1 : 0));
    if (shown_.code.has_branches)
      head += fmt::format("{:>9}{:>9}{:>9}{:>8}", "Taken", "Mispred", "Entered", "Cycles");
    if (shown_.code.has_cycles) head += fmt::format("{:>7}", "IPC");
    out_.text(head + fmt::format("  {:>{}}\n", "Address", address_width_));
  }

  void write_line(const std::string& text) {
    out_.text(text);
    out_.end_line();
  }

  // The number of blanks on lines without numbers.
  std::size_t margin() const {
    return cell_width_ * shown_.events.size() + (shown_.code.has_branches ? 35 : 0) +
           (shown_.code.has_cycles ? 7 : 0);
  }

  void write_source(const CodeRow& row) {
    const std::string left = row.kind == CodeRow::Kind::Source ? fmt::format("{}", row.source_line) : "";
    const std::string text =
        fmt::format("{:{}}  {:>{}} {}", "", margin(), left, address_width_, row.arrows) + row.text;
    const std::string kept = text.substr(0, text.find_last_not_of(' ') + 1);
    write_line(options_.has_colour ? std::string(kDim) + kept + std::string(kPlain) : kept);
  }

  std::string cell(std::size_t event, const HitCount& count) const {
    if (count.samples == 0) return std::string(cell_width_, ' ');
    const double percent = shown_.percent(event, count, options_);
    const std::string text =
        options_.column == Column::Percent   ? fmt::format("{:{}.2f}", percent, cell_width_)
        : options_.column == Column::Samples ? fmt::format("{:{}}", count.samples, cell_width_)
                                             : fmt::format("{:{}}", count.period, cell_width_);
    return options_.has_colour ? coloured_share(percent, text) : text;
  }

  std::string branch_cells(const BranchHits& hits) const {
    if (!shown_.code.has_branches) return {};
    const auto count = [](std::uint64_t value, std::size_t width) {
      return value == 0 ? std::string(width, ' ') : fmt::format("{:{}}", value, width);
    };
    const std::string cycles =
        hits.timed == 0
            ? std::string(8, ' ')
            : fmt::format("{:8.1f}", static_cast<double>(hits.cycles) / static_cast<double>(hits.timed));
    return count(hits.taken, 9) + count(hits.mispredicted, 9) + count(hits.entered, 9) + cycles;
  }

  void write_instruction(const CodeRow& row) {
    const CodeLine& line = shown_.code.lines[row.line];
    std::string text;
    for (std::size_t event = 0; event < shown_.events.size(); ++event)
      text += cell(event, shown_.code.counts_of(row.line)[event]);
    text += branch_cells(line.branches);
    if (shown_.code.has_cycles)
      text += line.per_cycle == 0 ? std::string(7, ' ') : fmt::format("{:7.2f}", line.per_cycle);
    text += fmt::format("  {:>{}x} ", shown_.code.address + line.offset, address_width_);
    write_line(text + row.arrows + row.text);
  }

  TextOutput& out_;
  const ShownCode& shown_;
  SourceFiles& files_;
  const CodeOptions& options_;
  std::size_t cell_width_, address_width_;
};

}  // namespace

std::string cycles_text(const AnnotatedCode& code) {
  return fmt::format("Average IPC: {:.2f}, coverage: {:.1f} %", code.per_cycle, code.covered);
}

std::vector<CodeRow> code_rows(const ShownCode& shown, SourceFiles& files, const CodeOptions& options) {
  std::vector<CodeRow> rows;
  CodeRows(shown, files, options).walk([&rows](const CodeRow& row) { rows.push_back(row); });
  return rows;
}

void write_code_text(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                     const CodeOptions& options) {
  CodeText(out, shown, files, options).write();
}

namespace {

constexpr double kLeastOfLine = 0.5;  // percent of a source line, above which -l shows it

// "local period", as perf calls it.
std::string share_text(const CodeOptions& options) {
  return std::string(options.of == ShareOf::Function ? "local " : "global ") +
         (options.by == ShareBy::Period ? "period" : "hits");
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// The line number in a text "/path:12". perf takes such a text for a source position and does not show it.
std::optional<std::uint32_t> number_of_position(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon < 2) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  return failed == std::errc{} ? std::optional(number) : std::nullopt;
}

// The section of a function, guessed from its name: few functions with known names are outside of .text.
std::string_view section_of(const HitFunction& function) {
  if (function.name.ends_with("@plt")) return ".plt";
  if (function.name == "_init") return ".init";
  if (function.name == "_fini") return ".fini";
  return ".text";
}

// Writes the text of one function.
class PerfLayout {
 public:
  PerfLayout(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options)
      : out_(out),
        shown_(shown),
        files_(files),
        options_(options),
        width_((options.column == Column::Period ? 12 : 8) * shown.events.size()),
        digits_(digits_of(shown.code)) {}

  void write() {
    if (options_.has_line_summary) write_summary();
    write_title();
    write_text("");
    write_text("");
    write_text("");
    write_text(fmt::format("Disassembly of section {}:", section_of(shown_.function)));
    write_text("");
    const std::string name = whole_name(shown_.function.name, shown_.function.linker_name);
    write_text(fmt::format("{:016x} <{}>:", shown_.code.address, printable(name, options_.names)));
    SourceWalk walk(files_, shown_, options_);
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      write_source(walk, shown_.code.lines[i]);
      write_instruction(i);
    }
  }

 private:
  void write_title() {
    // perf's rule is cut from a fixed string of dashes.
    constexpr std::size_t kMostDashes = 207;
    const std::string title = fmt::format(
        " {:<{}}|\tSource code & Disassembly of {} for {} ({} samples, percent: {})\n",
        column_name(options_.column), width_,
        printable(shown_path(shown_.function.module->path, options_), options_.names),
        printable(shown_.event_name, options_.names), shown_.totals[0].samples, share_text(options_));
    out_.text(title);
    const std::size_t dashes = std::min(title.size(), kMostDashes);
    out_.fill('-', dashes);
    out_.blanks(title.size() - dashes);
    out_.text("----\n");
  }

  // Writes a line of objdump that perf does not parse as an instruction. `text` has no tabs.
  void write_text(std::string_view text) {
    if (const auto number = number_of_position(text)) {
      counter_ = *number;
      return;
    }
    out_.blanks(1 + width_);
    if (text.empty()) {
      out_.text(":\n");
    } else {
      out_.text(fmt::format(": {:<{}} ", counter_, digits_));
      out_.text(text);
      out_.character('\n');
    }
    ++counter_;
    out_.line_end();
  }

  void write_source(SourceWalk& walk, const CodeLine& line) {
    const SourceWalk::Step step = walk.next_step(line);
    if (step.enters_function) {
      const std::string name = heading_name(line.function, line.function_linker);
      write_text(printable(name + ":", options_.names));
    }
    if (step.names_line) {
      if (step.file.starts_with('/'))
        counter_ = step.line;
      else
        write_text(printable(fmt::format("{}:{}", step.file, step.line), options_.names));
    }
    if (!options_.has_source) return;
    for (std::uint32_t number = step.first; number <= step.last; ++number) {
      const std::string text = without_tabs(trimmed(walk.text(step.file, number)));
      write_text(printable(text, options_.names));
    }
  }

  std::string cell(std::size_t event, const HitCount& count) const {
    const double percent = shown_.percent(event, count, options_);
    const std::string text = options_.column == Column::Percent   ? fmt::format(" {:7.2f}", percent)
                             : options_.column == Column::Samples ? fmt::format(" {:7}", count.samples)
                                                                  : fmt::format(" {:11}", count.period);
    return options_.has_colour ? coloured_share(percent, text) : text;
  }

  double most(std::size_t line) const {
    double percent = 0;
    for (std::size_t event = 0; event < shown_.events.size(); ++event)
      percent = std::max(percent, shown_.percent(event, shown_.code.counts_of(line)[event], options_));
    return percent;
  }

  void write_instruction(std::size_t number) {
    const CodeLine& line = shown_.code.lines[number];
    for (std::size_t event = 0; event < shown_.events.size(); ++event)
      out_.text(cell(event, shown_.code.counts_of(number)[event]));
    const std::string address = fmt::format("{:x}:", shown_.code.address + line.offset);
    constexpr std::size_t kMnemonic = 6;
    std::string text = address + '\t';
    if (options_.has_bytes) text += fmt::format("{:<20} \t", bytes_text(line.bytes));
    text += instruction_text(line, kMnemonic);
    const std::string plain = without_tabs(text);
    out_.text(" : ");
    out_.blanks(2 + digits_ + 1 - std::min(digits_ + 1, address.size()));
    out_.text(printable(plain, options_.names));
    write_branch_shares(line);
    if (const double percent = most(number); options_.has_line_summary && percent > kLeastOfLine) {
      const std::string line_text = line_name(line);
      if (line_text != last_line_) {
        const std::string note = " // " + printable(line_text, options_.names);
        out_.text(options_.has_colour ? coloured_share(percent, note) : note);
        last_line_ = line_text;
      }
    }
    out_.end_line();
    ++counter_;
  }

  // "# +33.33%": the part of the executions of this instruction that came by a branch. "# -50.00%
  // (p:90.00%)": the part that branched from here, and the part of these branches that the processor
  // predicted.
  void write_branch_shares(const CodeLine& line) {
    constexpr double kLeast = 0.1;
    const bool has_joins = line.joins > kLeast, has_leaves = line.leaves > kLeast;
    if (has_joins || has_leaves) out_.text("\t#");
    if (has_joins) out_.text(fmt::format(" +{:.2f}%", line.joins));
    if (has_leaves) out_.text(fmt::format(" -{:.2f}% (p:{:.2f}%)", line.leaves, line.predicted));
  }

  // The source line, as "hot.c:12"; without line info MODULE[ADDRESS].
  std::string line_name(const CodeLine& line) const {
    if (line.line == 0)
      return fmt::format("{}[{:x}]", shown_.function.module->short_name, shown_.code.address + line.offset);
    return fmt::format("{}:{}", shown_path(line.file, options_), line.line);
  }

  // -l: the source lines with most weight.
  void write_summary() {
    std::map<std::string, std::vector<double>> by_line;
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      if (most(i) <= kLeastOfLine) continue;
      auto& sums = by_line[line_name(shown_.code.lines[i])];
      sums.resize(shown_.events.size());
      for (std::size_t event = 0; event < sums.size(); ++event)
        sums[event] += shown_.percent(event, shown_.code.counts_of(i)[event], options_);
    }
    std::vector<std::pair<std::vector<double>, std::string>> rows;
    for (const auto& [line_text, sums] : by_line) rows.emplace_back(sums, line_text);
    std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.first; });
    out_.text(fmt::format("\nSorted summary for file {}\n{:-<46}\n\n",
                          printable(shown_.function.module->path, options_.names), ""));
    if (rows.empty()) out_.text(fmt::format(" Nothing higher than {:1.1f}%\n", kLeastOfLine));
    for (const auto& [sums, line_text] : rows) {
      for (const double percent : sums) {
        const std::string text = fmt::format(" {:7.2f}", percent);
        out_.text(options_.has_colour ? coloured_share(percent, text) : text);
      }
      const std::string text = ' ' + printable(line_text, options_.names);
      const double highest = *std::ranges::max_element(sums);
      out_.text(options_.has_colour ? coloured_share(highest, text) : text);
      out_.character('\n');
    }
  }

  TextOutput& out_;
  const ShownCode& shown_;
  SourceFiles& files_;
  const CodeOptions& options_;
  std::size_t width_, digits_;
  std::uint32_t counter_ = 0;  // perf's line counter: incremented by each line, set by source positions
  std::string last_line_;
};

}  // namespace

void write_perf_layout(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                       const CodeOptions& options) {
  PerfLayout(out, shown, files, options).write();
}

namespace {

std::string_view kind_text(const DisassembledInstruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::Jump:
      return instruction.is_conditional ? "conditional-jump" : "jump";
    case InstructionKind::Call:
      return "call";
    case InstructionKind::Return:
      return "return";
    case InstructionKind::Bad:
      return "bad";
    case InstructionKind::Other:
      break;
  }
  return {};
}

void write_counts(JsonFields& to, const ShownCode& shown, std::span<const HitCount> counts,
                  const CodeOptions& options) {
  to.begin_list("counts");
  for (std::size_t event = 0; event < counts.size(); ++event) {
    to.begin_object({});
    to.number("samples", counts[event].samples);
    to.number("period", counts[event].period);
    to.real("percent", shown.percent(event, counts[event], options));
    to.end_object();
  }
  to.end_list();
}

void write_branches(JsonFields& to, const BranchHits& hits) {
  to.begin_object("branches");
  to.number("taken", hits.taken);
  to.number("mispredicted", hits.mispredicted);
  to.number("entered", hits.entered);
  if (hits.timed != 0) {
    to.number("cycles", hits.cycles);
    to.number("timed", hits.timed);
  }
  to.end_object();
}

void write_line(JsonFields& to, const ShownCode& shown, std::size_t number, const CodeOptions& options) {
  const CodeLine& line = shown.code.lines[number];
  const DisassembledInstruction& instruction = line.instruction;
  to.begin_object({});
  to.hex("address", shown.code.address + line.offset);
  to.number("offset", line.offset);
  to.bytes("bytes", line.bytes);
  constexpr std::size_t kMnemonic = 6;
  to.text("text", instruction_text(line, kMnemonic));
  if (const std::string_view kind = kind_text(instruction); !kind.empty()) to.text("kind", kind);
  if (instruction.target) to.hex("target", *instruction.target);
  if (instruction.memory) to.hex("memory", *instruction.memory);
  if (!line.target_name.empty()) to.text("names", line.target_name);
  if (line.line != 0) {
    to.text("file", line.file);
    to.number("line", line.line);
  }
  if (!line.function.empty() && line.function != shown.function.name) to.text("inlined", line.function);
  const std::span<const HitCount> counts = shown.code.counts_of(number);
  if (std::ranges::any_of(counts, [](const HitCount& count) { return count.samples != 0; }))
    write_counts(to, shown, counts, options);
  if (line.branches.is_any()) write_branches(to, line.branches);
  if (line.per_cycle != 0) to.real("instructions_per_cycle", line.per_cycle);
  to.end_object();
}

// The source lines of the instructions, by file and number, if their files are known.
void write_source(JsonFields& to, const ShownCode& shown, SourceFiles& files, const CodeOptions& options) {
  const SourceWalk checked(files, shown, options);
  std::map<std::string_view, std::map<std::uint32_t, std::string_view>> lines;
  for (const CodeLine& line : shown.code.lines) {
    if (line.line == 0) continue;
    if (!line.source.empty()) {
      lines[line.file].emplace(line.line, line.source);
      continue;
    }
    const symbolize::SourceText& text = files.text_of(shown.function.module, line.file, line.line);
    if (line.line <= text.lines()) lines[line.file].emplace(line.line, text.line(line.line));
  }
  to.begin_list("source");
  for (const auto& [file, texts] : lines)
    for (const auto& [number, text] : texts) {
      to.begin_object({});
      to.text("file", file);
      to.number("line", number);
      to.text("text", text);
      to.end_object();
    }
  to.end_list();
}

}  // namespace

void write_code_json(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                     const CodeOptions& options) {
  JsonFields to(out);
  to.text("symbol", shown.function.name);
  to.text("dso", shown.function.module->path);
  to.hex("address", shown.code.address);
  to.number("size", shown.code.size);
  to.begin_list("events");
  for (std::size_t event = 0; event < shown.events.size(); ++event) {
    to.begin_object({});
    to.text("event", shown.events[event]);
    to.number("samples", shown.totals[event].samples);
    to.number("period", shown.totals[event].period);
    to.number("all_samples", shown.everything[event].samples);
    to.number("all_period", shown.everything[event].period);
    to.end_object();
  }
  to.end_list();
  if (shown.code.has_cycles) {
    to.real("instructions_per_cycle", shown.code.per_cycle);
    to.real("cycles_coverage", shown.code.covered);
  }
  if (!shown.code.missing_reason.empty()) to.text("missing", shown.code.missing_reason);
  to.begin_list("lines");
  for (std::size_t i = 0; i < shown.code.lines.size(); ++i) write_line(to, shown, i, options);
  to.end_list();
  if (options.has_source) write_source(to, shown, files, options);
  to.finish();
  out.end_line();
}

}  // namespace tacho::report
