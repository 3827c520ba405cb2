#include "report/views/diff/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cli/message_text.h"
#include "report/output/field_sinks.h"

namespace tacho::report {
namespace {

constexpr std::size_t kPathShown = 4;  // functions of a path

// Numbers and names of one event's findings.
class Words {
 public:
  Words(const JudgedComparison& judged, const ComparedEvent& event)
      : judged_(judged), event_(event), is_of_shares_(judged.comparison.question().is_of_shares()) {}

  std::string value(double value) const {
    return is_of_shares_ ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4g}", value);
  }
  std::string change(double value) const {
    return is_of_shares_ ? fmt::format("{:+.2f}", 100 * value) : fmt::format("{:+.4g}", value);
  }
  std::string interval(const Tested& tested) const {
    if (event_.run.coverage <= 0) return "";
    return fmt::format("{} .. {}", change(tested.interval.low), change(tested.interval.high));
  }
  std::string p(const Tested& tested) const {
    return tested.can_matter ? fmt::format("{:.3f}", tested.p) : "-";
  }
  std::string name(std::uint32_t function) const {
    return printable(judged_.comparison.functions()[function].name);
  }
  std::string why(const FunctionChange& finding) const {
    switch (finding.cause) {
      case ChangeCause::None:
        break;
      case ChangeCause::OwnCode:
        return "its own code";
      case ChangeCause::Callee:
        return "through " + path(finding.path);
      case ChangeCause::Callees:
        return "several functions that it calls";
      case ChangeCause::Moved:
        return fmt::format("moved {} {}, below {}", finding.tested.shift > 0 ? "from" : "to",
                           name(finding.others[0]), name(finding.others[1]));
      case ChangeCause::Inlined:
        return "gone: inlined into " + names(finding.others);
      case ChangeCause::Outlined:
        return "new: was inlined into " + names(finding.others);
      case ChangeCause::Appeared:
        return "new";
      case ChangeCause::Vanished:
        return "gone";
    }
    return "";
  }

  // "changed: ..."
  std::string verdict() const {
    const TestedRun& run = event_.run;
    const std::string minimal = value(event_.minimal_effect);
    switch (run.verdict) {
      case Verdict::Changed:
        return fmt::format("changed: {}, by {} or more (p {:.3f}; {}){}",
                           cli::counted(count(Verdict::Changed), "function"), minimal, run.p, labellings(),
                           undecided());
      case Verdict::Same:
        return fmt::format("same: no function changed by {} or more ({:.1f} % intervals)", minimal,
                           100 * run.coverage);
      case Verdict::Inconclusive:
        return fmt::format(
            "inconclusive: no change is certain (p {:.3f}; {}), but {} cannot be excluded for {}. A change "
            "of {} "
            "would have been seen in 4 of 5 such comparisons; about {} captures a side find {}",
            run.p, labellings(), minimal, cli::counted(count(Verdict::Inconclusive), "function"),
            value(run.detectable), run.captures_needed, minimal);
      case Verdict::Indicative:
        break;
    }
    return fmt::format(
        "indicative: too few captures for a verdict (the smallest p they can give is {:.3g}); {} a side "
        "or more give one",
        run.least_p, judged_.comparison.question().test.is_paired ? 6 : kLeastCaptures);
  }

 private:
  std::string undecided() const {
    const std::size_t number = count(Verdict::Inconclusive);
    return number == 0 ? "" : fmt::format("; {} undecided", cli::counted(number, "function"));
  }
  std::size_t count(Verdict verdict) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        event_.findings, [&](const FunctionChange& finding) { return finding.tested.verdict == verdict; }));
  }
  std::string labellings() const {
    return fmt::format("{} {} labellings of the captures", event_.run.is_sampled ? "a sample of" : "all",
                       event_.run.labellings);
  }
  std::string names(const std::vector<std::uint32_t>& functions) const {
    std::string text;
    for (std::size_t i = 0; i < functions.size() && i < kPathShown; ++i)
      text += (i == 0 ? "" : ", ") + name(functions[i]);
    return functions.size() > kPathShown ? text + " and others" : text;
  }
  // The end of a long path says more than its middle.
  std::string path(const std::vector<std::uint32_t>& functions) const {
    std::string text = functions.size() > kPathShown ? "... > " : "";
    const std::size_t first = functions.size() > kPathShown ? functions.size() - kPathShown : 0;
    for (std::size_t i = first; i < functions.size(); ++i)
      text += (i == first ? "" : " > ") + name(functions[i]);
    return text;
  }

  const JudgedComparison& judged_;
  const ComparedEvent& event_;
  bool is_of_shares_;
};

// The findings that a table shows: what changed or is undecided, then the largest others.
std::span<const FunctionChange> shown_findings(const ComparedEvent& event, std::size_t rows) {
  return std::span(event.findings).first(std::min(rows, event.findings.size()));
}

std::string_view part_name(CostPart part) { return part == CostPart::Self ? "self" : "total"; }

std::string captures_text(const Comparison& comparison) {
  const auto after =
      static_cast<std::size_t>(std::ranges::count(comparison.captures(), true, &SideCapture::is_after));
  const auto before = comparison.captures().size() - after;
  return fmt::format("{} before, {} after", cli::counted(before, "capture"), after);
}

std::string what_is_compared(const ComparisonQuestion& question) {
  if (!question.per.empty()) return "cost per " + printable(question.per);
  if (question.work == 1) return "cost of a capture";
  return question.work > 0 ? fmt::format("cost per unit of work ({} a capture)", question.work)
                           : std::string("shares of each capture's total");
}

void write_line(TextOutput& out, std::string_view line) {
  out.text(line);
  out.end_line();
}

void write_head(TextOutput& out, const JudgedComparison& judged) {
  for (const std::string& difference : judged.differences) write_line(out, "different " + difference);
  if (!judged.matched.empty()) write_line(out, "compared by name: " + judged.matched);
}

// A bar would begin another cell, and a backquote end the code.
std::string in_markdown(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<' || c == '\\' || c == '[') safe += '\\';
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
  constexpr std::string_view kNames[] = {"",        "own code", "callee",   "callees", "moved",
                                         "inlined", "outlined", "appeared", "vanished"};
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

void write_event(FieldSink& to, const Comparison& comparison, const ComparedEvent& event) {
  to.begin_object("");
  to.text("event", event.name);
  to.text("verdict", verdict_name(event.run.verdict));
  to.real("p", event.run.p);
  to.real("least_p", event.run.least_p);
  to.number("labellings", event.run.labellings);
  to.flag("is_sample_of_labellings", event.run.is_sampled);
  to.real("coverage", event.run.coverage);
  to.real("minimal_effect", event.minimal_effect);
  to.real("detectable", event.run.detectable);
  to.number("captures_needed", event.run.captures_needed);
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

}  // namespace

Verdict verdict_of(std::span<const ComparedEvent> events) {
  for (const Verdict verdict : {Verdict::Changed, Verdict::Inconclusive, Verdict::Indicative})
    if (std::ranges::any_of(events, [&](const ComparedEvent& event) { return event.run.verdict == verdict; }))
      return verdict;
  return Verdict::Same;
}

void write_verdict_text(TextOutput& out, const JudgedComparison& judged, std::size_t rows) {
  write_head(out, judged);
  write_line(out, fmt::format("{}: {}", captures_text(judged.comparison),
                              what_is_compared(judged.comparison.question())));
  for (const ComparedEvent& event : judged.events) {
    const Words words(judged, event);
    out.end_line();
    write_line(out, fmt::format("{}: {}", printable(event.name), words.verdict()));
    const auto findings = shown_findings(event, rows);
    if (findings.empty()) continue;
    out.end_line();
    write_line(
        out,
        fmt::format("{:>10} {:>10} {:>9}  {:>19} {:>6}  {:<12}  {:<5}  {}", "before", "after", "change",
                    event.run.coverage > 0 ? fmt::format("{:.1f} % interval", 100 * event.run.coverage) : "",
                    "p", "verdict", "of", "function"));
    for (const FunctionChange& finding : findings) {
      const Tested& tested = finding.tested;
      const std::string why = words.why(finding);
      write_line(out, fmt::format("{:>10} {:>10} {:>9}  {:>19} {:>6}  {:<12}  {:<5}  {}{}",
                                  words.value(tested.before), words.value(tested.after),
                                  words.change(tested.shift), words.interval(tested), words.p(tested),
                                  verdict_name(tested.verdict), part_name(finding.part),
                                  words.name(finding.function), why.empty() ? "" : "  (" + why + ")"));
    }
    if (findings.size() < event.findings.size())
      write_line(out,
                 fmt::format("and {} of {} with smaller changes", event.findings.size() - findings.size(),
                             cli::counted(event.findings.size(), "function")));
  }
}

void write_verdict_markdown(TextOutput& out, const JudgedComparison& judged, std::size_t rows) {
  constexpr std::size_t kLongest = 200;  // letters of a cell
  const auto cell = [](const std::string& text) {
    return in_markdown(text.size() > kLongest ? text.substr(0, kLongest) + "..." : text);
  };
  write_line(out, fmt::format("**{}** ({}, {})", verdict_name(verdict_of(judged.events)),
                              captures_text(judged.comparison),
                              in_markdown(what_is_compared(judged.comparison.question()))));
  for (const std::string& difference : judged.differences) write_line(out, "- different " + cell(difference));
  if (!judged.matched.empty()) write_line(out, "- compared by name: " + cell(judged.matched));
  for (const ComparedEvent& event : judged.events) {
    const Words words(judged, event);
    out.end_line();
    write_line(out, fmt::format("{}: {}", cell(printable(event.name)), cell(words.verdict())));
    out.end_line();
    write_line(out, "| before | after | change | interval | p | verdict | of | function | why |");
    write_line(out, "|---:|---:|---:|---:|---:|---|---|---|---|");
    for (const FunctionChange& finding : shown_findings(event, rows)) {
      const Tested& tested = finding.tested;
      write_line(out,
                 fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |", words.value(tested.before),
                             words.value(tested.after), words.change(tested.shift), words.interval(tested),
                             words.p(tested), verdict_name(tested.verdict), part_name(finding.part),
                             cell(words.name(finding.function)), cell(words.why(finding))));
    }
  }
}

void write_verdict_json(TextOutput& out, const JudgedComparison& judged) {
  JsonFields to(out);
  to.number("version", 1);
  to.text("verdict", verdict_name(verdict_of(judged.events)));
  to.text("compared", what_is_compared(judged.comparison.question()));
  to.real("alpha", judged.comparison.question().test.alpha);
  to.flag("is_paired", judged.comparison.question().test.is_paired);
  to.begin_list("captures");
  for (const SideCapture& capture : judged.comparison.captures()) {
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
  to.begin_list("events");
  for (const ComparedEvent& event : judged.events) write_event(to, judged.comparison, event);
  to.end_list();
  to.finish();
  out.end_line();
}

}  // namespace tacho::report
