#include "report/views/check/check_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/message_text.h"
#include "report/output/field_sinks.h"
#include "report/output/svg_text.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kCheckVersion = 1;  // of the JSON

// "parsing: share < 12 %: 14.2 % (13.1 to 15.3 %)".
std::string line_of(const Check& check) {
  return fmt::format("{}: {}: {}", printable(check.rule), printable(check.expectation), check.message);
}

void write_check_text(TextBuffer& out, const CheckReport& report) {
  for (const Check& check : report.checks) {
    const bool fails = report.fails(check);
    std::string verdict(check_verdict_name(check.verdict));
    if (fails)
      std::ranges::transform(verdict, verdict.begin(), [](unsigned char c) { return std::toupper(c); });
    const std::string place =
        fails ? fmt::format("{}:{}: ", printable(report.rules), check.line) : std::string();
    out.text(fmt::format("{:<13} {}{}\n", verdict, place, line_of(check)));
    if (!check.evidence.empty()) out.text(fmt::format("{:13} {}\n", "", check.evidence));
  }
  std::string counts;
  for (const CheckVerdict verdict :
       {CheckVerdict::Passed, CheckVerdict::Failed, CheckVerdict::Inconclusive, CheckVerdict::Skipped})
    if (const std::size_t count = report.count_of(verdict); count > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, check_verdict_name(verdict));
  // A pattern without quotes gives --base its first file alone.
  const std::string of =
      report.base.empty() ? std::string()
                          : fmt::format(" ({}, {} of the base)",
                                        cli::counted(report.captures.size(), "capture"), report.base.size());
  out.text(fmt::format("{}: {}{}\n", printable(report.rules), counts, of));
}

void write_check_json(TextBuffer& out, const CheckReport& report) {
  JsonFields to(out);
  to.number("tacho_check", kCheckVersion);
  to.text("rules", report.rules);
  to.begin_list("captures");
  for (const std::string& name : report.captures) to.text("", name);
  to.end_list();
  if (!report.base.empty()) {
    to.begin_list("base");
    for (const std::string& name : report.base) to.text("", name);
    to.end_list();
  }
  to.text("verdict", report.has_failed() ? "failed" : "passed");
  to.begin_list("checks");
  for (const Check& check : report.checks) {
    to.begin_object("");
    to.text("rule", check.rule);
    to.number("line", check.line);
    to.text("expectation", check.expectation);
    to.text("verdict", check_verdict_name(check.verdict));
    to.text("message", check.message);
    to.real("value", check.value);
    to.real("low", check.low);
    to.real("high", check.high);
    to.text("unit", check.unit);
    to.begin_list("values");
    for (const double value : check.values) to.real("", value);
    to.end_list();
    if (!check.evidence.empty()) to.printed("evidence", check.evidence);
    to.end_object();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

// A cell of a Markdown table: no markup and no line end.
std::string markdown_text(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '&' || c == '<' || c == '>') {
      safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;";
      continue;
    }
    if (std::string_view("\\`*_{}[]()#+-!|~@").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

// GitHub takes 65,536 bytes in a comment.
constexpr std::size_t kMostMarkdown = 60'000;

void write_check_markdown(TextBuffer& out, const CheckReport& report) {
  out.text(fmt::format("### tacho check: {}\n\n| | rule | expected | measured |\n|---|---|---|---|\n",
                       report.has_failed() ? "failed" : "passed"));
  std::size_t left_out = 0;
  // What fails comes first, then what is inconclusive.
  const auto rank = [&](const Check& check) {
    return report.fails(check) ? 0 : check.verdict == CheckVerdict::Inconclusive ? 1 : 2;
  };
  for (const int wanted : {0, 1, 2})
    for (const Check& check : report.checks) {
      if (rank(check) != wanted) continue;
      const bool failing = wanted == 0;
      const std::string row =
          fmt::format("| {} | {} | {} | {} |\n",
                      failing ? "**" + std::string(check_verdict_name(check.verdict)) + "**"
                              : check_verdict_name(check.verdict),
                      markdown_text(check.rule), markdown_text(check.expectation),
                      markdown_text(check.message + (check.evidence.empty() ? "" : "; " + check.evidence)));
      if (out.size() + row.size() > kMostMarkdown)
        ++left_out;
      else
        out.text(row);
    }
  if (left_out > 0) out.text(fmt::format("\n{} more are left out here.\n", left_out));
}

void write_junit(TextBuffer& out, const CheckReport& report) {
  std::size_t failures = 0;
  for (const Check& check : report.checks) failures += report.fails(check) ? 1 : 0;
  const std::string rules = xml_text(printable(report.rules));
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", report.checks.size(), failures,
                  report.count_of(CheckVerdict::Skipped));
  out.text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  out.text(fmt::format("<testsuites name=\"tacho check\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
                       report.checks.size(), failures));
  out.text(fmt::format("  <testsuite name=\"{}\" {} time=\"0\">\n", rules, counts));
  for (const Check& check : report.checks) {
    out.text(fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", rules,
                         xml_text(printable(check.rule + ": " + check.expectation))));
    const std::string said = xml_text(line_of(check));
    if (report.fails(check))
      out.text(fmt::format(
          ">\n      <failure message=\"{}\" type=\"{}\">{}:{}: {}{}{}</failure>\n    </testcase>\n", said,
          check_verdict_name(check.verdict), rules, check.line, said, check.evidence.empty() ? "" : "\n",
          xml_text(check.evidence)));
    else if (check.verdict == CheckVerdict::Skipped)
      out.text(fmt::format(">\n      <skipped>{}</skipped>\n    </testcase>\n", said));
    else
      out.text(fmt::format(">\n      <system-out>{}: {}</system-out>\n    </testcase>\n",
                           check_verdict_name(check.verdict), said));
  }
  out.text("  </testsuite>\n</testsuites>\n");
}

// GitHub shows ten of a kind for each step.
constexpr std::size_t kMostAnnotations = 10;

void write_github(TextBuffer& out, const CheckReport& report) {
  std::size_t errors = 0, warnings = 0;
  for (const Check& check : report.checks) {
    const bool fails = report.fails(check);
    if (!fails && check.verdict != CheckVerdict::Inconclusive) continue;
    std::size_t& count = fails ? errors : warnings;
    ++count;
    // The last one says how many more there are.
    if (count >= kMostAnnotations) continue;
    out.text(fmt::format("::{} file={},line={},title={}::{}\n", fails ? "error" : "warning",
                         github_text(printable(report.rules), GithubPlace::Property), check.line,
                         github_text(printable(check.rule), GithubPlace::Property),
                         github_text(line_of(check) + (check.evidence.empty() ? "" : "\n" + check.evidence),
                                     GithubPlace::Message)));
  }
  for (const auto& [count, kind] : {std::pair(errors, "error"), std::pair(warnings, "warning")})
    if (count >= kMostAnnotations)
      out.text(
          fmt::format("::{} title=tacho check::{} more, in the log\n", kind, count - kMostAnnotations + 1));
}

// The same for the same rule of the same file, so that a system knows it from earlier runs.
std::string fingerprint_of(const CheckReport& report, const Check& check) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : report.rules + '\0' + check.rule + '\0' + check.expectation) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

void write_gitlab(TextBuffer& out, const CheckReport& report) {
  out.character('[');
  bool is_first = true;
  for (const Check& check : report.checks) {
    if (!report.fails(check) && check.verdict != CheckVerdict::Inconclusive) continue;
    out.text(is_first ? "\n" : ",\n");
    is_first = false;
    JsonFields to(out);
    to.text("description", line_of(check));
    to.text("check_name", check.rule);
    to.text("fingerprint", fingerprint_of(report, check));
    to.text("severity", report.fails(check) ? "major" : "minor");
    to.begin_object("location");
    to.text("path", report.rules);
    to.begin_object("lines");
    to.number("begin", check.line);
    to.end_object();
    to.end_object();
    to.finish();
  }
  out.text(is_first ? "]\n" : "\n]\n");
}

// As in a URI: the path of the rule file.
std::string uri_of(std::string_view path) {
  std::string made;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos)
      made += c;
    else
      made += fmt::format("%{:02X}", byte);
  }
  return made;
}

void write_sarif(TextBuffer& out, const CheckReport& report) {
  constexpr std::size_t kMost = 5000;  // results that GitHub takes
  JsonFields to(out);
  to.text("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  to.text("version", "2.1.0");
  to.begin_list("runs");
  to.begin_object("");
  to.begin_object("tool");
  to.begin_object("driver");
  to.text("name", "tacho check");
  to.begin_list("rules");
  std::vector<std::string> ids;
  for (const Check& check : report.checks) {
    if (std::ranges::count(ids, check.rule) != 0) continue;
    ids.push_back(check.rule);
    to.begin_object("");
    to.text("id", check.rule);
    to.end_object();
  }
  to.end_list();
  to.end_object();
  to.end_object();
  to.begin_list("results");
  std::size_t count = 0;
  for (const Check& check : report.checks) {
    if (count++ == kMost) break;
    const bool fails = report.fails(check);
    to.begin_object("");
    to.text("ruleId", check.rule);
    to.text("kind", fails || check.verdict == CheckVerdict::Inconclusive ? "fail"
                    : check.verdict == CheckVerdict::Skipped             ? "notApplicable"
                                                                         : "pass");
    to.text("level", fails ? "error" : check.verdict == CheckVerdict::Inconclusive ? "warning" : "none");
    to.begin_object("message");
    to.text("text", line_of(check) + (check.evidence.empty() ? "" : "; " + check.evidence));
    to.end_object();
    to.begin_list("locations");
    to.begin_object("");
    to.begin_object("physicalLocation");
    to.begin_object("artifactLocation");
    to.text("uri", uri_of(report.rules));
    to.end_object();
    to.begin_object("region");
    to.number("startLine", std::max(check.line, 1U));
    to.end_object();
    to.end_object();
    to.end_object();
    to.end_list();
    to.begin_object("partialFingerprints");
    to.text("tachoCheck/v1", fingerprint_of(report, check));
    to.end_object();
    to.end_object();
  }
  to.end_list();
  to.end_object();
  to.end_list();
  to.finish();
  out.character('\n');
}

constexpr CheckForm kForms[] = {
    {"text", "lines for people (the default)", write_check_text},
    {"json", "one object (docs/ci.md)", write_check_json},
    {"markdown", "a table, as for a step summary or a comment", write_check_markdown},
    {"junit", "JUnit XML, a test case for each expectation", write_junit},
    {"github", "workflow commands of GitHub, which annotate the rule file", write_github},
    {"gitlab", "a code quality report of GitLab", write_gitlab},
    {"sarif", "SARIF 2.1.0", write_sarif},
};

}  // namespace

std::size_t CheckReport::count_of(CheckVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(checks, verdict, &Check::verdict));
}

bool CheckReport::has_failed() const {
  return std::ranges::any_of(checks, [this](const Check& check) { return fails(check); });
}

std::span<const CheckForm> check_forms() { return kForms; }

std::string github_text(std::string_view text, GithubPlace place) {
  std::string made;
  for (const char c : text) {
    const bool is_in_property = place == GithubPlace::Property && (c == ':' || c == ',');
    if (c == '%' || c == '\r' || c == '\n' || is_in_property)
      made += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      made += c;
  }
  return made;
}

}  // namespace tacho::report
