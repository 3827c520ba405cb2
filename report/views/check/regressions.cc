#include "report/views/check/regressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/message_text.h"

namespace tacho::report {
namespace {

ComparisonQuestion question_of(const RegressionRule& rule) {
  ComparisonQuestion question;
  question.source.event = rule.event;
  question.per = rule.per;
  question.work = static_cast<std::uint64_t>(rule.work);
  question.test.minimal_effect = rule.min_effect / 100;
  question.test.alpha = rule.alpha;
  return question;
}

}  // namespace

RegressionCheck::RegressionCheck(const RegressionRule& rule, std::size_t captures)
    : rule_(&rule), comparison_(question_of(rule), captures) {}

Result<> RegressionCheck::add_capture(Session& session, const std::string& name, bool is_of_base,
                                      const RunSession& run) {
  const auto added = comparison_.add(session, name, !is_of_base, run);
  if (!added) return Error(added.error()).in(printable(name));
  return Done{};
}

std::string RegressionCheck::shown_amount(double value) const {
  return comparison_.question().is_of_shares() ? fmt::format("{:.3g} %", 100 * value)
                                               : fmt::format("{:.4g}", value);
}

bool RegressionCheck::takes(const FunctionChange& change) const {
  return rule_->functions.empty() ||
         RulePattern(rule_->functions).matches(comparison_.functions()[change.function].name);
}

Check RegressionCheck::check_of(const ComparedEvent& event, const FunctionChange& change) const {
  const Tested& tested = change.tested;
  Check made;
  made.rule = rule_->name;
  made.line = rule_->line;
  made.expectation = event.name;
  made.verdict = CheckVerdict::Failed;
  made.value = tested.shift, made.low = tested.interval.low, made.high = tested.interval.high;
  made.message =
      fmt::format("{}{} costs {} more: {} before, {} after (p {:.3f})",
                  printable(comparison_.functions()[change.function].name),
                  change.part == CostPart::Self ? "" : " with its callees", shown_amount(tested.shift),
                  shown_amount(tested.before), shown_amount(tested.after), tested.p);
  for (const std::uint32_t function : change.path)
    made.evidence +=
        (made.evidence.empty() ? "through " : " > ") + printable(comparison_.functions()[function].name);
  return made;
}

Check RegressionCheck::check_of_all(const ComparedEvent& event) const {
  const TestedRun& run = event.run;
  Check made;
  made.rule = rule_->name;
  made.line = rule_->line;
  made.expectation = event.name;
  switch (run.verdict) {
    case Verdict::Indicative:
      made.verdict = CheckVerdict::Inconclusive;
      made.message = "four captures a side, or more, are needed for a verdict";
      break;
    case Verdict::Inconclusive:
      made.verdict = CheckVerdict::Inconclusive;
      made.message = fmt::format(
          "no change is certain (p {:.3f}), but {} cannot be excluded; {} would have been seen; about {} "
          "a side would decide",
          run.p, shown_amount(event.minimal_effect), shown_amount(run.detectable),
          cli::counted(run.captures_needed, "capture"));
      break;
    case Verdict::Same:
      made.message = fmt::format("no function changed by {} or more", shown_amount(event.minimal_effect));
      break;
    case Verdict::Changed:
      made.message = "no function costs more";
      break;
  }
  return made;
}

Result<std::vector<Check>> RegressionCheck::checks() {
  (void)comparison_.match_sides();
  const auto events = comparison_.judge();
  if (!events) return events.error();
  std::vector<Check> all;
  for (const ComparedEvent& event : *events) {
    const std::size_t before = all.size();
    for (const FunctionChange& change : event.findings)
      if (change.tested.verdict == Verdict::Changed && change.tested.shift > 0 && takes(change))
        all.push_back(check_of(event, change));
    if (all.size() == before) all.push_back(check_of_all(event));
  }
  return all;
}

}  // namespace tacho::report
