#include "report/views/annotate/code_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "report/output/terminal.h"

namespace tacho::report {
namespace {

using Column = CodeOptions::Column;

constexpr std::size_t kMostArrows = 6;  // side by side; jumps beyond have no arrow
constexpr std::string_view kDim = "\033[2m", kPlain = "\033[m";

// All jumps to one instruction of the function, drawn as one line with several ends.
struct Arrow {
  std::size_t target = 0;            // number of a line
  std::size_t first = 0, last = 0;   // lines that it goes by
  std::size_t column = kMostArrows;  // from the text to the left; kMostArrows: there was no room
  std::set<std::size_t> sources;     // numbers of lines
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

// Short arrows stand next to the text, long ones around them.
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

// What stands between address and text: the arrows that go by.
class Arrows {
 public:
  explicit Arrows(const AnnotatedCode& code) : arrows_(arrows_of(code)) {
    give_columns(arrows_);
    for (const Arrow& arrow : arrows_)
      if (arrow.column < kMostArrows) width_ = std::max(width_, arrow.column + 1);
    std::ranges::sort(arrows_, {}, &Arrow::first);
  }
  // Before an instruction; called with ascending numbers.
  std::string before(std::size_t line) {
    while (next_ < arrows_.size() && arrows_[next_].first <= line) {
      const Arrow& arrow = arrows_[next_++];
      if (arrow.column < kMostArrows) active_[arrow.column] = &arrow;
    }
    std::string text;
    bool has_end = false;  // a line leads to the instruction from further left
    bool is_target = false;
    for (std::size_t column = width_; column-- > 0;) {
      const Arrow*& arrow = active_[column];
      if (arrow != nullptr && arrow->last < line) arrow = nullptr;
      const bool is_there = arrow != nullptr && arrow->first <= line;
      const bool is_end = is_there && (arrow->target == line || arrow->sources.contains(line));
      if (is_end) {
        const bool goes_up = line > arrow->first, goes_down = line < arrow->last;
        text += goes_up && goes_down ? "├" : goes_up ? "└" : goes_down ? "┌" : "─";
        has_end = true;
        is_target = is_target || arrow->target == line;
      } else if (is_there) {
        text += has_end ? "┼" : "│";
      } else {
        text += has_end ? "─" : " ";
      }
    }
    if (width_ == 0) return text;
    return text + (is_target ? "►" : has_end ? "─" : " ") + ' ';
  }
  // Before a line of source in front of instruction `line`.
  std::string through(std::size_t line) const {
    std::string text;
    for (std::size_t column = width_; column-- > 0;) {
      const auto goes_through = [&](const Arrow& arrow) {
        return arrow.column == column && arrow.first < line && arrow.last >= line;
      };
      const Arrow* const active = active_[column];
      text += active != nullptr && goes_through(*active) ? "│" : " ";
    }
    return width_ == 0 ? text : text + "  ";
  }

 private:
  std::vector<Arrow> arrows_;
  std::size_t next_ = 0, width_ = 0;
  const Arrow* active_[kMostArrows] = {};
};

// The rows of one function, in their order.
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
    SourceWalk walk(files_);
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      walk_source(walk, i, visit);
      visit(instruction(i));
    }
  }

 private:
  void walk_source(SourceWalk& walk, std::size_t number, const std::function<void(const CodeRow&)>& visit) {
    const CodeLine& line = shown_.code.lines[number];
    const SourceWalk::Step step = walk.next(line);
    if (!options_.has_source) return;
    CodeRow row{.kind = CodeRow::Kind::Function, .line = number, .arrows = arrows_.through(number)};
    if (step.enters_function) {
      row.text = printable(heading_name(line.function, line.function_linker), options_.names) + ":";
      if (!step.file.empty()) row.text += "  " + printable(shown_path(step.file, options_), options_.names);
      visit(row);
    }
    row.kind = CodeRow::Kind::Source;
    for (std::uint32_t at = step.first; at <= step.last; ++at) {
      std::string text;
      for (const char c : walk.text(step.file, at))
        c == '\t' ? text.append(8 - text.size() % 8, ' ') : text += c;
      row.source_line = at;
      row.text = printable(text, options_.names);
      visit(row);
    }
    // Of stripped BPF programs only the numbers of lines are known.
    const bool is_bpf = shown_.function.module->kind == symbolize::ModuleKind::Bpf;
    if (!is_bpf || !step.names_line || step.first <= step.last) return;
    row.source_line = step.line;
    row.text = printable(shown_path(step.file, options_), options_.names);
    visit(row);
  }

  // Which way it leads: up or down in the function, out of it, back to the caller.
  std::string_view mark(const CodeLine& line) const {
    const DisassembledInstruction& instruction = line.instruction;
    if (instruction.kind == InstructionKind::Return) return "← ";
    if (instruction.kind == InstructionKind::Call) return "→ ";
    if (instruction.kind != InstructionKind::Jump) return "  ";
    if (!instruction.target || *instruction.target - shown_.code.address >= shown_.code.size) return "→ ";
    return *instruction.target > instruction.address ? "↓ " : "↑ ";
  }

  CodeRow instruction(std::size_t number) {
    const CodeLine& line = shown_.code.lines[number];
    CodeRow row{.kind = CodeRow::Kind::Instruction, .line = number, .arrows = arrows_.before(number)};
    if (options_.has_bytes) row.text += fmt::format("{:<{}} ", bytes_text(line.bytes), bytes_);
    row.text += mark(line);
    row.text += printable(instruction_text(line, mnemonic_), options_.names);
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
      : out_(out), shown_(shown), files_(files), options_(options) {
    const auto& lines = shown.code.lines;
    if (!lines.empty()) digits_ = fmt::format("{:x}", shown.code.address + lines.back().offset).size();
  }

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
    const std::string_view what = options_.column == Column::Percent   ? "Percent"
                                  : options_.column == Column::Samples ? "Samples"
                                                                       : "Period";
    std::string head = "#";
    for (std::size_t event = 0; event < shown_.events.size(); ++event)
      head += fmt::format("{:>{}}", what, cell_width() - (event == 0 ? 1 : 0));
    if (shown_.code.has_branches)
      head += fmt::format("{:>9}{:>9}{:>9}{:>8}", "Taken", "Mispred", "Entered", "Cycles");
    out_.text(head + fmt::format("  {:>{}}\n", "Address", std::max<std::size_t>(digits_, 7)));
  }

  std::size_t cell_width() const { return options_.column == Column::Period ? 14 : 9; }
  std::size_t address_width() const { return std::max<std::size_t>(digits_, 7); }

  void write_line(const std::string& text) {
    out_.text(text);
    out_.character('\n');
    out_.line_end();
  }

  // Blanks in place of numbers.
  std::size_t margin() const {
    return cell_width() * shown_.events.size() + (shown_.code.has_branches ? 35 : 0);
  }

  void write_source(const CodeRow& row) {
    const std::string left = row.kind == CodeRow::Kind::Source ? fmt::format("{}", row.source_line) : "";
    const std::string text =
        fmt::format("{:{}}  {:>{}} {}", "", margin(), left, address_width(), row.arrows) + row.text;
    const auto end = text.find_last_not_of(' ');
    const std::string kept = text.substr(0, end == std::string::npos ? 0 : end + 1);
    write_line(options_.has_colour ? std::string(kDim) + kept + std::string(kPlain) : kept);
  }

  std::string cell(std::size_t event, const HitCount& count) const {
    if (count.samples == 0) return std::string(cell_width(), ' ');
    const double percent = shown_.percent(event, count, options_);
    const std::size_t width = cell_width();
    const std::string text = options_.column == Column::Percent   ? fmt::format("{:{}.2f}", percent, width)
                             : options_.column == Column::Samples ? fmt::format("{:{}}", count.samples, width)
                                                                  : fmt::format("{:{}}", count.period, width);
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
    text += fmt::format("  {:>{}x} ", shown_.code.address + line.offset, address_width());
    write_line(text + row.arrows + row.text);
  }

  TextOutput& out_;
  const ShownCode& shown_;
  SourceFiles& files_;
  const CodeOptions& options_;
  std::size_t digits_ = 1;
};

}  // namespace

std::vector<CodeRow> code_rows(const ShownCode& shown, SourceFiles& files, const CodeOptions& options) {
  std::vector<CodeRow> rows;
  CodeRows(shown, files, options).walk([&rows](const CodeRow& row) { rows.push_back(row); });
  return rows;
}

void write_code_text(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                     const CodeOptions& options) {
  CodeText(out, shown, files, options).write();
}

}  // namespace tacho::report
