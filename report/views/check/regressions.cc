#include "report/views/check/regressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/message_text.h"
#include "report/output/quantity_text.h"

namespace tacho::report {
namespace {

ComparisonQuestion question_of(const RegressionRule& rule) {
  ComparisonQuestion question;
  question.source.event = rule.event;
  question.per = rule.per;
  question.work = static_cast<std::uint64_t>(rule.work);
  question.test.minimal_effect = rule.min_effect / 100;
  question.test.alpha = rule.alpha / 100;
  return question;
}

// Whether it may be worse by what matters.
bool is_undecided(const Tested& tested, double minimal_effect) {
  return tested.verdict == Verdict::Inconclusive && tested.interval.high >= minimal_effect;
}

bool is_worse(const Tested& tested) { return tested.verdict == Verdict::Changed && tested.shift > 0; }

}  // namespace

RegressionCheck::RegressionCheck(const RegressionRule& rule, std::size_t captures)
    : rule_(&rule), comparison_(question_of(rule), captures) {
  if (!rule.field.empty())
    fields_.emplace(std::vector{field_name_of(rule.field, rule.event)}, comparison_.question().test);
}

Result<> RegressionCheck::add_capture(Session& session, const std::string& name, bool is_of_base,
                                      const RunSession& run) {
  if (fields_) {
    if (auto added = fields_->add(session, name, !is_of_base, run); !added)
      return std::move(added.error()).in(printable(name));
    return Done{};
  }
  if (const auto added = comparison_.add(session, name, !is_of_base, run); !added)
    return Error(added.error()).in(printable(name));
  return Done{};
}

Check RegressionCheck::failed(const Tests& tests, const Tested& tested, std::string what) const {
  Check made;
  made.rule = rule_->name;
  made.line = rule_->line;
  made.expectation = tests.of;
  made.verdict = CheckVerdict::Failed;
  made.value = tested.shift, made.low = tested.interval.low, made.high = tested.interval.high;
  made.message = fmt::format("{} (p {:.3f})", what, tested.p);
  return made;
}

Check RegressionCheck::without_failures(const Tests& tests, bool is_undecided) const {
  const TestedRun& run = tests.run;
  Check made;
  made.rule = rule_->name;
  made.line = rule_->line;
  made.expectation = tests.of;
  if (run.verdict == Verdict::Indicative) {
    made.verdict = CheckVerdict::Inconclusive;
    made.message = "four captures a side, or more, are needed for a verdict";
  } else if (is_undecided) {
    made.verdict = CheckVerdict::Inconclusive;
    made.message = fmt::format(
        "no {} is certainly worse (p {:.3f}), but {} cannot be excluded; {} would have been seen; about {} a "
        "side would decide",
        tests.noun, run.p, tests.minimal, tests.detectable, cli::counted(run.captures_needed, "capture"));
  } else {
    made.message = fmt::format("no {} is worse by {} or more", tests.noun, tests.minimal);
  }
  return made;
}

void RegressionCheck::check_functions(const ComparedEvent& event, std::vector<Check>& all) const {
  const auto amount = [&](double value) {
    return comparison_.question().is_of_shares() ? quantity_text(100 * value, "%")
                                                 : quantity_text(value, event.unit);
  };
  const auto name_of = [&](std::uint32_t function) {
    return printable(comparison_.functions()[function].name);
  };
  const Tests tests{event.run, event.name, "function", amount(event.minimal_effect),
                    amount(event.run.detectable)};
  const RulePattern wanted(rule_->functions.empty() ? "*" : rule_->functions);
  const std::size_t before = all.size();
  bool has_undecided = false;
  for (const FunctionChange& change : event.findings) {
    const Tested& tested = change.tested;
    if (!wanted.matches(comparison_.functions()[change.function].name)) continue;
    has_undecided |= is_undecided(tested, event.minimal_effect);
    if (!is_worse(tested)) continue;
    Check made = failed(tests, tested,
                        fmt::format("{}{} costs {} more: {} before, {} after", name_of(change.function),
                                    change.part == CostPart::Self ? "" : " with its callees",
                                    amount(tested.shift), amount(tested.before), amount(tested.after)));
    for (const std::uint32_t function : change.path)
      made.evidence += (made.evidence.empty() ? "through " : " > ") + name_of(function);
    all.push_back(std::move(made));
  }
  if (all.size() == before) all.push_back(without_failures(tests, has_undecided));
}

void RegressionCheck::check_field(const ComparedField& field, std::vector<Check>& all) const {
  const double minimal = comparison_.question().test.minimal_effect;
  const Tests tests{field.run, field.name, "measure", quantity_text(100 * minimal, "%"),
                    quantity_text(100 * field.run.detectable, "%")};
  const std::size_t before = all.size();
  bool has_undecided = false;
  for (const ComparedQuantity& one : field.quantities) {
    has_undecided |= is_undecided(one.tested, minimal * one.tested.before);
    if (is_worse(one.tested))
      all.push_back(failed(tests, one.tested,
                           fmt::format("{} is {} larger: {} before, {} after", one.name,
                                       quantity_text(one.tested.shift, field.unit),
                                       quantity_text(one.tested.before, field.unit),
                                       quantity_text(one.tested.after, field.unit))));
  }
  if (all.size() == before) all.push_back(without_failures(tests, has_undecided));
}

Result<std::vector<Check>> RegressionCheck::checks() {
  std::vector<Check> all;
  if (fields_) {
    for (const ComparedField& field : fields_->judge()) check_field(field, all);
    return all;
  }
  (void)comparison_.match_sides();
  const auto events = comparison_.judge();
  if (!events) return events.error();
  for (const ComparedEvent& event : *events) check_functions(event, all);
  return all;
}

}  // namespace tacho::report
