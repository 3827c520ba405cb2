#include "report/views/diff/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>

#include "cli/message_text.h"
#include "report/output/field_sinks.h"
#include "report/output/quantity_text.h"

namespace tacho::report {
namespace {

// What a run of tests says, in one line: "changed: ...".
struct RunWords {
  const TestedRun& run;
  std::string_view noun;  // of what is tested: "function"
  std::size_t changed = 0, undecided = 0;
  std::string minimal, detectable;  // effects, as texts
  bool is_paired = false;

  std::string text() const {
    switch (run.verdict) {
      case Verdict::Changed:
        return fmt::format("changed: {}, by {} or more ({}; {}){}", cli::counted(changed, noun), minimal,
                           p_text(run.p), labellings(),
                           undecided == 0
                               ? ""
                               : fmt::format("; inconclusive for {}, about {} captures a side would decide",
                                             cli::counted(undecided, noun), run.captures_needed));
      case Verdict::Same:
        return fmt::format("same: no {} changed by {} or more ({:.1f} % intervals)", noun, minimal,
                           100 * run.coverage);
      case Verdict::Inconclusive:
        return fmt::format(
            "inconclusive: no change is certain ({}; {}), but {} cannot be excluded for {}. A change "
            "of {} would have been seen in 4 of 5 such comparisons; about {} captures a side find {}",
            p_text(run.p), labellings(), minimal, cli::counted(undecided, noun), detectable,
            run.captures_needed, minimal);
      case Verdict::Indicative:
        break;
    }
    return fmt::format(
        "indicative: too few captures for a verdict (the smallest p they can give is {:.3g}); {} a side "
        "or more give one",
        run.least_p, is_paired ? 6 : kLeastCaptures);
  }

 private:
  std::string labellings() const {
    return fmt::format("{} {} labellings of the captures", run.is_sampled ? "a sample of" : "all",
                       run.labellings);
  }
};

// A row of a table.
struct Row {
  std::string before, after, change, interval, p;
  std::string_view verdict;
  std::string_view part;  // of the function, or of the values
  std::string name;       // of the function, and what explains its change
  std::string why;
};

// A table of findings, with what is said above and below it.
struct Table {
  std::string name, verdict, interval, below;
  std::string_view part = "of", function = "function";  // headings
  std::vector<Row> rows{};
};

// Texts of numbers in one unit; shares are percent of a total.
struct Numbers {
  bool are_shares = false;
  std::string_view unit;

  std::string value(double value) const {
    return are_shares ? fmt::format("{:.2f} %", 100 * value) : quantity_text(value, unit);
  }
  std::string change(double value) const {
    return are_shares ? fmt::format("{:+.2f}", 100 * value) : change_text(value, unit);
  }
  Row row(const Tested& tested, double coverage) const {
    Row made{.before = value(tested.before),
             .after = value(tested.after),
             .change = change(tested.shift),
             .interval = {},
             .p = tested.can_matter ? p_text(tested.p).substr(2) : "-",
             .verdict = verdict_name(tested.verdict),
             .part = {},
             .name = {},
             .why = {}};
    if (coverage > 0)
      made.interval = fmt::format("{} .. {}", change(tested.interval.low), change(tested.interval.high));
    return made;
  }
};

// How many of the findings, or of a field's measures, have this verdict.
template <class Findings>
std::size_t count_of(const Findings& findings, Verdict verdict) {
  return static_cast<std::size_t>(
      std::ranges::count_if(findings, [&](const auto& one) { return one.tested.verdict == verdict; }));
}

std::string heading_of_intervals(const TestedRun& run) {
  return run.coverage > 0 ? fmt::format("{:.1f} % interval", 100 * run.coverage) : "";
}

std::string_view part_name(CostPart part) { return part == CostPart::Self ? "self" : "total"; }

// The table of one event's functions.
class FunctionTableWords {
 public:
  FunctionTableWords(const JudgedComparison& judged, const ComparedEvent& event)
      : judged_(judged), event_(event), numbers_{judged.functions->question().is_of_shares(), event.unit} {
    for (const FunctionChange& finding : event.findings) by_function_.emplace(finding.function, &finding);
  }

  // `most`: rows.
  Table table(std::size_t most) const {
    const RunWords words{.run = event_.run,
                         .noun = "function",
                         .changed = count_of(event_.findings, Verdict::Changed),
                         .undecided = count_of(event_.findings, Verdict::Inconclusive),
                         .minimal = numbers_.value(event_.minimal_effect),
                         .detectable = numbers_.value(event_.run.detectable),
                         .is_paired = judged_.test.is_paired};
    Table made{.name = printable(event_.name),
               .verdict = words.text(),
               .interval = heading_of_intervals(event_.run),
               .below = {}};
    const auto callers = callers_without_row();
    std::size_t in_rows = 0;  // findings that have a row, or are in one
    for (const FunctionChange& finding : event_.findings) {
      const Tested& tested = finding.tested;
      const bool is_nothing = tested.before == 0 && tested.after == 0 && tested.shift == 0;
      if (made.rows.size() == most || is_nothing) break;
      if (is_in_row_of(finding, callee_of(finding))) continue;
      const auto found = callers.find(finding.function);
      const auto of_row = found == callers.end() ? std::vector<std::uint32_t>() : found->second;
      made.rows.push_back(row_of(finding, of_row));
      in_rows += 1 + of_row.size();
    }
    if (const std::size_t empty = event_.empty_captures(); empty > 0)
      made.verdict += fmt::format(". {} of {} have no sample of it", empty,
                                  cli::counted(event_.totals.size(), "capture"));
    if (const std::size_t left = event_.findings.size() - in_rows; left > 0)
      made.below = fmt::format("and {} of {} with smaller changes", left,
                               cli::counted(event_.findings.size(), "function"));
    return made;
  }

 private:
  // The finding of the function that explains this one; null: there is none.
  const FunctionChange* callee_of(const FunctionChange& caller) const {
    if (caller.cause != ChangeCause::Callee) return nullptr;
    const auto found = by_function_.find(caller.others.front());
    return found == by_function_.end() ? nullptr : found->second;
  }
  // Whether the caller changed by what the callee did, and nothing else: it needs no row.
  static bool is_in_row_of(const FunctionChange& caller, const FunctionChange* callee) {
    return callee != nullptr && callee->cause != ChangeCause::Callee &&
           caller.tested.verdict == callee->tested.verdict &&
           std::abs(caller.tested.shift - callee->tested.shift) <= 0.1 * std::abs(callee->tested.shift);
  }
  // By function: those callers of it.
  std::map<std::uint32_t, std::vector<std::uint32_t>> callers_without_row() const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> callers;
    for (const FunctionChange& finding : event_.findings)
      if (const auto* const callee = callee_of(finding); is_in_row_of(finding, callee))
        callers[callee->function].push_back(finding.function);
    return callers;
  }

  Row row_of(const FunctionChange& finding, std::span<const std::uint32_t> callers) const {
    constexpr std::size_t kShown = 3;  // callers
    Row made = numbers_.row(finding.tested, event_.run.coverage);
    made.part = part_name(finding.part);
    made.name = name(finding.function);
    made.why = cause_text(*judged_.functions, finding);
    if (callers.empty()) return made;
    std::string names;
    for (const std::uint32_t caller : callers.first(std::min(callers.size(), kShown)))
      names += (names.empty() ? "" : ", ") + name(caller);
    if (callers.size() > kShown) names += fmt::format(" and {} more", callers.size() - kShown);
    made.why += (made.why.empty() ? "" : "; ") + ("and so its callers: " + names);
    return made;
  }
  std::string name(std::uint32_t function) const {
    return printable(judged_.functions->functions()[function].name);
  }
  const JudgedComparison& judged_;
  const ComparedEvent& event_;
  Numbers numbers_;
  std::unordered_map<std::uint32_t, const FunctionChange*> by_function_;
};

// "1,204 to 1,310": the fewest and the most of a capture.
std::string counts_text(const ComparedField& field, std::span<const SideCapture> captures, bool is_after) {
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (captures[i].is_after != is_after) continue;
    least = std::min(least, field.counts[i]);
    most = std::max(most, field.counts[i]);
  }
  const std::string first = with_commas(static_cast<double>(least));
  return least == most ? first : first + " to " + with_commas(static_cast<double>(most));
}

// The table of one field: mean and percentiles.
Table table_of(const JudgedComparison& judged, const ComparedField& field) {
  const Numbers numbers{.are_shares = false, .unit = field.unit};
  const RunWords words{.run = field.run,
                       .noun = "measure",
                       .changed = count_of(field.quantities, Verdict::Changed),
                       .undecided = count_of(field.quantities, Verdict::Inconclusive),
                       .minimal = quantity_text(100 * judged.test.minimal_effect, "%"),
                       .detectable = quantity_text(100 * field.run.detectable, "%"),
                       .is_paired = judged.test.is_paired};
  Table made{.name = printable(field.name),
             .verdict = words.text(),
             .interval = heading_of_intervals(field.run),
             .below = fmt::format("values of a capture: {} before, {} after",
                                  counts_text(field, judged.captures, false),
                                  counts_text(field, judged.captures, true)),
             .part = "of",
             .function = "relative"};
  for (const ComparedQuantity& quantity : field.quantities) {
    Row row = numbers.row(quantity.tested, field.run.coverage);
    row.part = quantity.name;
    row.name = quantity.tested.before == 0
                   ? "-"
                   : fmt::format("{:+.1f} %", 100 * quantity.tested.shift / std::abs(quantity.tested.before));
    made.rows.push_back(std::move(row));
  }
  return made;
}

std::vector<Table> tables_of(const JudgedComparison& judged, std::size_t rows) {
  std::vector<Table> tables;
  for (const ComparedEvent& event : judged.events)
    tables.push_back(FunctionTableWords(judged, event).table(rows));
  for (const ComparedField& field : judged.fields) tables.push_back(table_of(judged, field));
  return tables;
}

std::string captures_text(std::span<const SideCapture> captures) {
  const auto after = static_cast<std::size_t>(std::ranges::count(captures, true, &SideCapture::is_after));
  return fmt::format("{} before, {} after", cli::counted(captures.size() - after, "capture"), after);
}

void write_line(TextBuffer& out, std::string_view line) {
  out.text(line);
  out.character('\n');
}

// A bar would begin another cell, a backquote begin code, and an @ notify somebody.
std::string in_markdown(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '@' || c == '&' || c == '<') {
      safe += c == '@' ? "&#64;" : c == '&' ? "&amp;" : "&lt;";
      continue;
    }
    if (std::string_view("|*_\\[#~").find(c) != std::string_view::npos) safe += '\\';
    safe += c == '`' ? '\'' : c;
  }
  return safe;
}

void write_tested(FieldSink& to, const Tested& tested) {
  to.text("verdict", verdict_name(tested.verdict));
  to.real("p", tested.p);
  to.real("before", tested.before);
  to.real("after", tested.after);
  to.real("change", tested.shift);
  to.real("low", tested.interval.low);
  to.real("high", tested.interval.high);
  to.real("noise", tested.floor);
  to.real("detectable", tested.detectable);
}

std::string_view cause_name(ChangeCause cause) {
  constexpr std::string_view kNames[] = {"",        "own code", "callee",   "callees",  "moved",
                                         "inlined", "outlined", "absorbed", "appeared", "vanished"};
  return kNames[static_cast<std::size_t>(cause)];
}

void write_names(FieldSink& to, std::string_view name, const Comparison& comparison,
                 const std::vector<std::uint32_t>& functions) {
  if (functions.empty()) return;
  to.begin_list(name);
  for (const std::uint32_t function : functions) to.text("", comparison.functions()[function].name);
  to.end_list();
}

void write_finding(FieldSink& to, const Comparison& comparison, const FunctionChange& finding) {
  const ComparedFunction& function = comparison.functions()[finding.function];
  to.begin_object("");
  to.text("function", function.name);
  to.text("module", function.module);
  to.text("part", part_name(finding.part));
  write_tested(to, finding.tested);
  if (finding.cause != ChangeCause::None) to.text("cause", cause_name(finding.cause));
  write_names(to, "others", comparison, finding.others);
  write_names(to, "path", comparison, finding.path);
  to.end_object();
}

void write_run(FieldSink& to, const TestedRun& run) {
  to.text("verdict", verdict_name(run.verdict));
  to.real("p", run.p);
  to.real("least_p", run.least_p);
  to.number("labellings", run.labellings);
  to.flag("is_sample_of_labellings", run.is_sampled);
  to.real("coverage", run.coverage);
  to.real("detectable", run.detectable);
  to.number("captures_needed", run.captures_needed);
}

void write_event(FieldSink& to, const Comparison& comparison, const ComparedEvent& event) {
  to.begin_object("");
  to.text("event", event.name);
  if (!event.unit.empty()) to.text("unit", event.unit);
  write_run(to, event.run);
  to.real("minimal_effect", event.minimal_effect);
  to.number("functions", event.functions);
  to.begin_list("totals");
  for (const double total : event.totals) to.real("", total);
  to.end_list();
  to.begin_list("findings");
  for (const FunctionChange& finding : event.findings)
    if (finding.tested.can_matter) write_finding(to, comparison, finding);
  to.end_list();
  to.end_object();
}

void write_field(FieldSink& to, const TestOptions& test, const ComparedField& field) {
  to.begin_object("");
  to.text("field", field.name);
  if (!field.unit.empty()) to.text("unit", field.unit);
  write_run(to, field.run);
  to.real("minimal_effect", test.minimal_effect);
  to.begin_list("counts");
  for (const std::uint64_t count : field.counts) to.number("", count);
  to.end_list();
  to.begin_list("quantities");
  for (const ComparedQuantity& quantity : field.quantities) {
    to.begin_object("");
    to.text("quantity", quantity.name);
    write_tested(to, quantity.tested);
    to.end_object();
  }
  to.end_list();
  to.end_object();
}

}  // namespace

Verdict JudgedComparison::verdict() const {
  for (const Verdict verdict : {Verdict::Changed, Verdict::Inconclusive, Verdict::Indicative})
    if (std::ranges::any_of(events, [&](const auto& one) { return one.run.verdict == verdict; }) ||
        std::ranges::any_of(fields, [&](const auto& one) { return one.run.verdict == verdict; }))
      return verdict;
  return Verdict::Same;
}

std::string what_is_compared(const ComparisonQuestion& question) {
  if (!question.per.empty()) return "cost per " + printable(question.per);
  if (question.work == 1) return "cost of a capture";
  return question.work > 0 ? fmt::format("cost per unit of work ({} a capture)", question.work)
                           : std::string("shares of each capture's total");
}

void write_verdict_text(TextBuffer& out, const JudgedComparison& judged, std::size_t rows) {
  for (const std::string& difference : judged.differences) write_line(out, "different " + difference);
  if (!judged.matched.empty()) write_line(out, "compared by name: " + judged.matched);
  write_line(out, captures_text(judged.captures) + ": " + judged.compared);
  for (const Table& table : tables_of(judged, rows)) {
    write_line(out, "\n" + table.name + ": " + table.verdict);
    if (table.rows.empty()) continue;
    write_line(out, fmt::format("\n{:>10} {:>10} {:>9}  {:>21} {:>6}  {:<12}  {:<5}  {}", "before", "after",
                                "change", table.interval, "p", "verdict", table.part, table.function));
    for (const Row& row : table.rows)
      write_line(out, fmt::format("{:>10} {:>10} {:>9}  {:>21} {:>6}  {:<12}  {:<5}  {}{}", row.before,
                                  row.after, row.change, row.interval, row.p, row.verdict, row.part, row.name,
                                  row.why.empty() ? "" : "  (" + row.why + ")"));
    if (!table.below.empty()) write_line(out, table.below);
  }
}

void write_verdict_markdown(TextBuffer& out, const JudgedComparison& judged, std::size_t rows) {
  constexpr std::size_t kLongest = 200;          // letters of a cell
  constexpr std::size_t kMostMarkdown = 60'000;  // bytes: GitHub's comments have 64 kB
  const auto cell = [](const std::string& text) {
    if (text.size() <= kLongest) return in_markdown(text);
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;  // within a character
    return in_markdown(text.substr(0, end)) + "...";
  };
  write_line(out, fmt::format("**{}** ({}, {})", verdict_name(judged.verdict()),
                              captures_text(judged.captures), in_markdown(judged.compared)));
  for (const std::string& difference : judged.differences) write_line(out, "- different " + cell(difference));
  if (!judged.matched.empty()) write_line(out, "- compared by name: " + cell(judged.matched));
  for (const Table& table : tables_of(judged, rows)) {
    write_line(out, fmt::format("\n{}: {}\n", cell(table.name), cell(table.verdict)));
    write_line(out, fmt::format("| before | after | change | interval | p | verdict | {} | {} | why |",
                                table.part, table.function));
    write_line(out, "|---:|---:|---:|---:|---:|---|---|---|---|");
    std::size_t left_out = 0;
    for (const Row& row : table.rows) {
      if (out.size() > kMostMarkdown) {
        ++left_out;
        continue;
      }
      write_line(out, fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |", cell(row.before),
                                  cell(row.after), cell(row.change), cell(row.interval), cell(row.p),
                                  row.verdict, row.part, cell(row.name), cell(row.why)));
    }
    if (left_out > 0)
      write_line(out, fmt::format("\n{} more are left out here.", cli::counted(left_out, "row")));
  }
}

void write_verdict_json(TextBuffer& out, const JudgedComparison& judged) {
  JsonFields to(out);
  to.number("version", 1);
  to.text("verdict", verdict_name(judged.verdict()));
  to.text("compared", judged.compared);
  to.real("alpha", judged.test.alpha);
  to.flag("is_paired", judged.test.is_paired);
  to.begin_list("captures");
  for (const SideCapture& capture : judged.captures) {
    to.begin_object("");
    to.text("file", capture.name);
    to.text("side", capture.is_after ? "after" : "before");
    if (capture.units > 0) to.real("units", capture.units);
    to.end_object();
  }
  to.end_list();
  to.begin_list("differences");
  for (const std::string& difference : judged.differences) to.text("", difference);
  to.end_list();
  if (judged.functions != nullptr) {
    to.begin_list("events");
    for (const ComparedEvent& event : judged.events) write_event(to, *judged.functions, event);
    to.end_list();
  }
  if (!judged.fields.empty()) {
    to.begin_list("fields");
    for (const ComparedField& field : judged.fields) write_field(to, judged.test, field);
    to.end_list();
  }
  to.finish();
  out.character('\n');
}

}  // namespace tacho::report
