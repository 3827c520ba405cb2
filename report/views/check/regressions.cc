#include "report/views/check/regressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
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
  question.test.is_paired = rule.is_paired;
  if (!rule.functions.empty())
    question.takes = [pattern = std::make_shared<RulePattern>(rule.functions)](
                         const ComparedFunction& function) { return pattern->matches(function.name); };
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
    if (!missing_.empty()) return Done{};
    if (auto added = fields_->add_capture(session, name, !is_of_base, run); !added)
      missing_ = std::move(added.error()).in(printable(name)).what;
    return Done{};
  }
  if (auto added = comparison_.add_capture(session, name, !is_of_base, run); !added)
    return std::move(added.error()).in(printable(name));
  return Done{};
}

Check RegressionCheck::made_for(const std::string& of, CheckVerdict verdict, std::string message) const {
  Check made;
  made.rule = rule_->name;
  made.line = rule_->line;
  made.expectation = of;
  made.verdict = verdict;
  made.message = std::move(message);
  return made;
}

Check RegressionCheck::without_failures(const Tests& tests, bool is_undecided) const {
  const TestedRun& run = tests.run;
  if (run.verdict == Verdict::Indicative) {
    const auto after = static_cast<std::size_t>(std::ranges::count(captures(), true, &SideCapture::is_after));
    return made_for(tests.of, CheckVerdict::Inconclusive,
                    fmt::format("too few captures for a verdict: {} of the base and {} others; {}",
                                captures().size() - after, after,
                                rule_->is_paired ? "six pairs give one" : "four a side give one"));
  }
  if (is_undecided)
    return made_for(
        tests.of, CheckVerdict::Inconclusive,
        fmt::format(
            "no {} is certainly worse ({}), but {} cannot be excluded; {} would have been seen; about "
            "{} a side would decide",
            tests.noun, p_text(run.p), tests.minimal, tests.detectable,
            cli::counted(run.captures_needed, "capture")));
  return made_for(tests.of, CheckVerdict::Passed,
                  fmt::format("no {} is worse by {} or more", tests.noun, tests.minimal));
}

std::span<const SideCapture> RegressionCheck::captures() const {
  return fields_ ? fields_->captures() : comparison_.captures();
}

// Cost that moved from another function is no regression, nor is a function that was inlined before. What a
// callee explains is said once, of the callee.
bool RegressionCheck::is_regression(const FunctionChange& change,
                                    const std::vector<std::uint32_t>& causes) const {
  switch (change.cause) {
    case ChangeCause::Moved:
    case ChangeCause::Outlined:
    case ChangeCause::Absorbed:
      return false;
    case ChangeCause::Callee:
      return std::ranges::find(causes, change.others[0]) == causes.end();
    default:
      return true;
  }
}

void RegressionCheck::check_functions(const ComparedEvent& event, std::vector<Check>& all) const {
  if (const std::size_t empty = event.empty_captures(); empty > 0) {
    all.push_back(made_for(event.name, CheckVerdict::Failed,
                           fmt::format("{} of {} have no sample of it: nothing was measured", empty,
                                       cli::counted(event.totals.size(), "capture"))));
    return;
  }
  const bool is_of_shares = comparison_.question().is_of_shares();
  const auto amount = [&](double value) {
    return is_of_shares ? quantity_text(100 * value, "%") : quantity_text(value, event.unit);
  };
  const auto name_of = [&](std::uint32_t function) {
    return printable(comparison_.functions()[function].name);
  };
  const Tests tests{event.run, event.name, "function", amount(event.minimal_effect),
                    amount(event.run.detectable)};
  std::vector<const FunctionChange*> wanted;
  std::vector<std::uint32_t> causes;  // functions that are worse, and whose change no other explains
  bool has_undecided = false;
  for (const FunctionChange& change : event.findings) {
    wanted.push_back(&change);
    has_undecided |= is_undecided(change.tested, event.minimal_effect);
    if (is_worse(change.tested) && is_regression(change, {}) && change.cause != ChangeCause::Callee)
      causes.push_back(change.function);
  }
  if (wanted.empty()) {
    all.push_back(made_for(event.name, rule_->is_optional ? CheckVerdict::Skipped : CheckVerdict::Failed,
                           rule_->is_optional
                               ? "nothing matches"
                               : "nothing matches; optional = true lets a rule match nothing"));
    return;
  }
  const std::size_t before = all.size();
  std::string moved;
  for (const FunctionChange* const change : wanted) {
    const Tested& tested = change->tested;
    if (!is_worse(tested)) continue;
    const std::string name = name_of(change->function), cause = cause_text(comparison_, *change);
    if (!is_regression(*change, causes)) {
      if (change->cause != ChangeCause::Callee) moved += (moved.empty() ? "" : "; ") + name + ": " + cause;
      continue;
    }
    const bool is_self = change->part == CostPart::Self;
    Check& made = all.emplace_back(
        made_for(event.name + ": " + name + (is_self ? "" : " with its callees"), CheckVerdict::Failed,
                 fmt::format("costs {} {}more: medians {} before, {} after ({})", amount(tested.shift),
                             is_of_shares ? "of the total " : "", amount(tested.before), amount(tested.after),
                             p_text(tested.p))));
    const double scale = is_of_shares ? 100 : 1;
    made.unit = is_of_shares ? "%" : event.unit;
    made.value = scale * tested.shift, made.low = scale * tested.interval.low,
    made.high = scale * tested.interval.high;
    made.evidence = cause;
  }
  if (all.size() > before) return;
  all.push_back(without_failures(tests, has_undecided));
  all.back().evidence = moved;
}

void RegressionCheck::check_field(const ComparedField& field, std::vector<Check>& all) const {
  const double minimal = comparison_.question().test.minimal_effect;
  const Tests tests{field.run, field.name, "measure", quantity_text(100 * minimal, "%"),
                    quantity_text(100 * field.run.detectable, "%")};
  const std::size_t before = all.size();
  bool has_undecided = false;
  for (const ComparedQuantity& one : field.quantities) {
    const Tested& tested = one.tested;
    has_undecided |= is_undecided(tested, one.minimal_effect);
    if (!is_worse(tested)) continue;
    Check& made = all.emplace_back(made_for(
        field.name + ": " + one.name, CheckVerdict::Failed,
        fmt::format("{} is {} larger: medians {} before, {} after ({})", one.name,
                    quantity_text(tested.shift, field.unit), quantity_text(tested.before, field.unit),
                    quantity_text(tested.after, field.unit), p_text(tested.p))));
    made.unit = field.unit;
    made.value = tested.shift, made.low = tested.interval.low, made.high = tested.interval.high;
  }
  if (all.size() == before) all.push_back(without_failures(tests, has_undecided));
}

std::vector<std::string> RegressionCheck::notes() const {
  std::vector<std::string> notes;
  for (const std::string& difference : differences_of(captures()))
    notes.push_back(fmt::format("tacho check: {}: different {}", printable(rule_->name), difference));
  return notes;
}

Result<std::vector<Check>> RegressionCheck::checks() {
  std::vector<Check> all;
  if (!missing_.empty()) {
    all.push_back(made_for(rule_->field, rule_->is_optional ? CheckVerdict::Skipped : CheckVerdict::Failed,
                           missing_.substr(0, missing_.find('\n'))));
    return all;
  }
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
