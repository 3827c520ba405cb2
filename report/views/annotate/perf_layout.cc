#include "report/views/annotate/perf_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "report/output/terminal.h"

namespace tacho::report {
namespace {

using Column = CodeOptions::Column;

constexpr double kLeastOfLine = 0.5;  // percent of a source line, below which -l does not name it
constexpr std::size_t kTab = 8;

// "local period", as perf calls it.
std::string share_text(const CodeOptions& options) {
  return std::string(options.of == ShareOf::Function ? "local " : "global ") +
         (options.by == ShareBy::Period ? "period" : "hits");
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Tabs become blanks up to the next multiple of 8.
std::string without_tabs(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\t')
      plain.append(kTab - plain.size() % kTab, ' ');
    else
      plain += c;
  }
  return plain;
}

// The number of a line that perf takes for the name of a place, "/path:12": such lines are not shown.
std::optional<std::uint32_t> number_of_place(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon < 2) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  return failed == std::errc{} ? std::optional(number) : std::nullopt;
}

// The section is not in the model: code of programs that is not in .text has one of few names.
std::string_view section_of(const HitFunction& function) {
  if (function.name.ends_with("@plt")) return ".plt";
  if (function.name == "_init") return ".init";
  if (function.name == "_fini") return ".fini";
  return ".text";
}

// One function's text.
class PerfLayout {
 public:
  PerfLayout(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options)
      : out_(out), shown_(shown), files_(files), options_(options) {
    const auto& lines = shown.code.lines;
    if (!lines.empty()) digits_ = fmt::format("{:x}", shown.code.address + lines.back().offset).size();
    width_ = (options.column == Column::Period ? 12 : 8) * shown.events.size();
  }

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
    SourceWalk walk(files_);
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      write_source(walk, shown_.code.lines[i]);
      write_instruction(i);
    }
  }

 private:
  void write_title() {
    // perf takes its rule from a stock of dashes that is not longer than this.
    constexpr std::size_t kMostDashes = 207;
    const std::string_view what = options_.column == Column::Percent   ? "Percent"
                                  : options_.column == Column::Samples ? "Samples"
                                                                       : "Period";
    const std::string title = fmt::format(
        " {:<{}}|\tSource code & Disassembly of {} for {} ({} samples, percent: {})\n", what, width_,
        printable(shown_path(shown_.function.module->path, options_), options_.names),
        printable(shown_.event_name, options_.names), shown_.totals[0].samples, share_text(options_));
    out_.text(title);
    out_.fill('-', std::min(title.size(), kMostDashes));
    out_.blanks(title.size() - std::min(title.size(), kMostDashes));
    out_.text("----\n");
  }

  // What perf reads from objdump and does not take for an instruction. `text` has no tabs.
  void write_text(std::string_view text) {
    if (const auto number = number_of_place(text)) {
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
    const SourceWalk::Step step = walk.next(line);
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
    if (const double percent = most(number); options_.has_line_summary && percent > kLeastOfLine) {
      const std::string place = place_of(line);
      if (place != last_place_) {
        const std::string note = " // " + printable(place, options_.names);
        out_.text(options_.has_colour ? coloured_share(percent, note) : note);
        last_place_ = place;
      }
    }
    out_.character('\n');
    out_.line_end();
    ++counter_;
  }

  // "hot.c:12".
  std::string place_of(const CodeLine& line) const {
    if (line.line == 0)
      return fmt::format("{}[{:x}]", shown_.function.module->short_name, shown_.code.address + line.offset);
    return fmt::format("{}:{}", shown_path(line.file, options_), line.line);
  }

  // -l: the source lines that weigh most.
  void write_summary() {
    std::map<std::string, std::vector<double>> by_place;
    for (std::size_t i = 0; i < shown_.code.lines.size(); ++i) {
      if (most(i) <= kLeastOfLine) continue;
      auto& sums = by_place[place_of(shown_.code.lines[i])];
      sums.resize(shown_.events.size());
      for (std::size_t event = 0; event < sums.size(); ++event)
        sums[event] += shown_.percent(event, shown_.code.counts_of(i)[event], options_);
    }
    std::vector<std::pair<std::vector<double>, std::string>> rows;
    for (const auto& [place, sums] : by_place) rows.emplace_back(sums, place);
    std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.first; });
    out_.text(fmt::format("\nSorted summary for file {}\n{:-<46}\n\n",
                          printable(shown_.function.module->path, options_.names), ""));
    if (rows.empty()) out_.text(fmt::format(" Nothing higher than {:1.1f}%\n", kLeastOfLine));
    for (const auto& [sums, place] : rows) {
      for (const double percent : sums) {
        const std::string text = fmt::format(" {:7.2f}", percent);
        out_.text(options_.has_colour ? coloured_share(percent, text) : text);
      }
      const std::string text = ' ' + printable(place, options_.names);
      const double highest = *std::ranges::max_element(sums);
      out_.text(options_.has_colour ? coloured_share(highest, text) : text);
      out_.character('\n');
    }
  }

  TextOutput& out_;
  const ShownCode& shown_;
  SourceFiles& files_;
  const CodeOptions& options_;
  std::size_t width_ = 0, digits_ = 1;
  std::uint32_t counter_ = 0;  // perf's number of a line: rises with each, and is set by names of places
  std::string last_place_;
};

}  // namespace

void write_perf_layout(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                       const CodeOptions& options) {
  PerfLayout(out, shown, files, options).write();
}

}  // namespace tacho::report
