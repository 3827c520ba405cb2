#include "report/views/check/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "report/output/quantity_text.h"
#include "report/output/text_output.h"
#include "report/profile/slow_intervals.h"

namespace tacho::report {
namespace {

constexpr std::size_t kNoField = ~std::size_t{0};
constexpr double kTwoSided95 = 1.959963984540054;  // quantile of the normal distribution

// Whether a function or a module matches, looked up once for each.
class PatternMatches {
 public:
  PatternMatches(const MeasuredCapture& capture, const std::string& pattern, bool by_module)
      : capture_(capture), pattern_(pattern), by_module_(by_module) {}

  bool matches(FunctionId id) {
    const auto index = static_cast<std::size_t>(id);
    if (known_.size() <= index) known_.resize(index + 1);
    std::optional<bool>& known = known_[index];
    if (!known) known = look_at(capture_.function(id));
    return *known;
  }

 private:
  bool look_at(const Function& function) const {
    if (!by_module_) return pattern_.matches(name_of_function(function));
    if (function.module == nullptr) return pattern_.matches("[unknown]");
    return pattern_.matches(function.module->short_name) || pattern_.matches(function.module->path);
  }

  const MeasuredCapture& capture_;
  RulePattern pattern_;
  bool by_module_;
  std::vector<std::optional<bool>> known_;
};

// What the stacks of an event that match a rule add up to.
struct Matching {
  Weight total, self;  // with callees, without
  std::string heaviest;
};

class StackRule {
 public:
  StackRule(const Rule& rule, const MeasuredCapture& capture) : rule_(rule), capture_(capture) {
    for (const std::string& pattern : rule.patterns)
      patterns_.emplace_back(capture, pattern, rule.subject == Subject::Modules);
    if (!rule.below.empty()) below_.emplace(capture, rule.below, false);
  }

  // `has_callers`: whether anything matches `below`.
  Matching add_up(std::size_t event, bool& has_callers) {
    Matching sum;
    std::uint64_t heaviest = 0;
    FunctionStack best;
    capture_.each_stack(event, [&](FunctionStack stack, const Weight& weight) {
      if (below_)
        has_callers |= std::ranges::any_of(stack, [&](FunctionId id) { return below_->matches(id); });
      if (!matches(stack)) return;
      sum.total += weight;
      if (patterns_.back().matches(stack.front())) sum.self += weight;
      if (weight.period >= heaviest) heaviest = weight.period, best = stack;
    });
    sum.heaviest = shown_stack(best);
    return sum;
  }

 private:
  // Root first; of a deep stack its innermost functions.
  std::string shown_stack(FunctionStack stack) const {
    constexpr std::size_t kMost = 8;
    std::string text = stack.size() > kMost ? "... > " : "";
    for (std::size_t i = std::min(stack.size(), kMost); i-- > 0;)
      text += printable(name_of_function(capture_.function(stack[i]))) + (i > 0 ? " > " : "");
    return text;
  }

  // The patterns in the order of the stack from its root, with any functions in between.
  bool matches(FunctionStack stack) {
    std::size_t next = 0;
    bool is_below = !below_;
    for (std::size_t i = stack.size(); i-- > 0 && next < patterns_.size();) {
      if (is_below && patterns_[next].matches(stack[i])) ++next;
      if (below_ && below_->matches(stack[i])) is_below = true;
    }
    return next == patterns_.size();
  }

  const Rule& rule_;
  const MeasuredCapture& capture_;
  std::vector<PatternMatches> patterns_;
  std::optional<PatternMatches> below_;
};

// A percentile's interval: that of its rank.
Measured percentile_of(const Summary& values, double percent) {
  const auto count = static_cast<double>(values.count());
  const double p = percent / 100, half = kTwoSided95 * std::sqrt(p * (1 - p) / count) * 100;
  const auto at = [&](double rank) { return number_of(values.percentile(std::clamp(rank, 0.0, 100.0))); };
  return {.value = at(percent),
          .low = at(percent - half),
          .high = at(percent + half),
          .samples = values.count(),
          .unit = {}};
}

Measured exact(double value, std::string unit) {
  return {.value = value, .low = value, .high = value, .unit = std::move(unit)};
}

Measured measure_field(const Summary& values, std::string_view unit, const Expectation& expectation) {
  Measured made;
  switch (expectation.measure) {
    case Measure::Count:
      return {.value = static_cast<double>(values.count()),
              .low = static_cast<double>(values.count()),
              .high = static_cast<double>(values.count()),
              .is_found = values.count() > 0,
              .unit = {}};
    case Measure::Percentile:
      made = values.count() == 0 ? Measured() : percentile_of(values, expectation.percent);
      break;
    case Measure::Sum:
      made = exact(number_of(values.sum()), {});
      break;
    case Measure::Mean:
      made = exact(number_of(values.mean()), {});
      break;
    case Measure::Least:
      made = exact(number_of(values.least()), {});
      break;
    default:
      made = exact(number_of(values.largest()), {});
      break;
  }
  // A field in us is compared with a limit in ns.
  double scale = 1;
  if (const auto known = field_unit(unit); known && expectation.unit != Expectation::Unit::None) {
    scale = static_cast<double>(known->size);
    made.unit = known->kind == cli::NumberUnit::Time ? "ns" : "bytes";
  } else {
    made.unit = unit;
  }
  made.value *= scale, made.low *= scale, made.high *= scale;
  made.is_found = values.count() > 0;
  return made;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

// The number of units of work.
Result<double> work_in(const Rule& rule, const MeasuredCapture& capture) {
  if (rule.per.empty()) return rule.work;
  for (const MeasuredEvent& event : capture.events())
    if (event.name == rule.per && event.weight.samples > 0)
      return static_cast<double>(event.weight.period > 0 ? event.weight.period : event.weight.samples);
  return Error{fmt::format("per: there are no samples of '{}'", printable(rule.per))};
}

Measured measure_code(const Expectation& expectation, const MeasuredEvent& event, const Matching& matching,
                      double work) {
  const bool has_periods = event.weight.period > 0;
  const auto weight_of = [has_periods](const Weight& weight) {
    return static_cast<double>(has_periods ? weight.period : weight.samples);
  };
  const bool is_self = expectation.measure == Measure::SelfShare || expectation.measure == Measure::SelfCost;
  const Weight& part = is_self ? matching.self : matching.total;
  const double all = weight_of(event.weight), share = all > 0 ? 100 * weight_of(part) / all : 0;
  const auto [low, high] = interval_of_share(share, static_cast<double>(event.weight.samples));
  Measured made{
      .value = share, .low = low, .high = high, .is_found = matching.total.samples > 0, .unit = "%"};
  made.evidence = matching.heaviest;
  made.samples = event.weight.samples;
  if (expectation.measure == Measure::Samples) {
    const auto samples = static_cast<double>(matching.total.samples);
    made.value = made.low = made.high = samples;
    made.samples = 0;
    made.unit = "samples";
  } else if (expectation.measure == Measure::Cost || expectation.measure == Measure::SelfCost) {
    for (double* const one : {&made.value, &made.low, &made.high}) *one *= all / 100 / work;
    made.unit = has_periods ? event.unit : "samples";
  }
  return made;
}

// How an inconclusive check could be decided: an interval is half as wide with four times as many samples.
std::string what_would_decide(const Expectation& expectation, const Judged& judged,
                              const std::vector<Measured>& captures) {
  if (captures.size() > 1) return "; more captures would decide";
  const double half = (judged.high - judged.low) / 2, distance = std::abs(judged.value - expectation.limit);
  constexpr double kMost = 1e9;  // samples
  const double ratio = distance > 0 ? half / distance : kMost;
  const double samples = static_cast<double>(captures.front().samples) * ratio * ratio;
  if (captures.front().samples == 0 || samples > kMost) return {};
  const double shown = std::pow(10, std::max(0.0, std::floor(std::log10(samples)) - 1));
  return fmt::format("; about {} samples would decide", with_commas(std::ceil(samples / shown) * shown));
}

// The smallest number of values on each side of the median's interval that reaches 95 %, as an index; else 0.
std::size_t rank_of_interval(std::size_t count) {
  double probability = std::pow(0.5, static_cast<double>(count)), below = 0;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < count / 2; ++i) {
    below += probability;
    if (2 * below > 0.05) break;
    rank = i;
    probability *= static_cast<double>(count - i) / static_cast<double>(i + 1);
  }
  return rank;
}

}  // namespace

std::pair<double, double> interval_of_share(double share, double all) {
  if (all <= 0) return {share, share};
  const double z = kTwoSided95, p = share / 100, n = all, scale = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / scale;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale;
  return {std::clamp(100 * (middle - half), 0.0, share), std::clamp(100 * (middle + half), share, 100.0)};
}

double number_of(const ExpressionValue& value) {
  return value.kind == ExpressionValue::Kind::Real ? value.real : static_cast<double>(value.whole);
}

std::string name_of_function(const Function& function) {
  return function.has_symbol() ? std::string(function.name()) : std::string("[unknown]");
}

Result<std::size_t> event_of_rule(const Rule& rule, const MeasuredCapture& capture) {
  std::vector<std::string> names, clocks;
  std::size_t found = 0, clock = 0;
  for (std::size_t event = 0; event < capture.events().size(); ++event) {
    const MeasuredEvent& one = capture.events()[event];
    if (one.weight.samples == 0 || one.name == rule.per) continue;
    if (one.name == rule.event) return event;
    names.push_back(one.name);
    found = event;
    if (one.is_clock) clocks.push_back(one.name), clock = event;
  }
  if (!rule.event.empty())
    return Error{fmt::format("there are no samples of '{}'{}", printable(rule.event),
                             names.empty() ? std::string() : "; there are: " + listed(names))};
  if (clocks.size() == 1) return clock;
  if (names.size() == 1) return found;
  if (names.empty()) return Error{"the capture has no samples"};
  return Error{fmt::format("several events have samples: {}; event = \"NAME\" chooses one", listed(names))};
}

std::string_view check_verdict_name(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::Passed:
      return "passed";
    case CheckVerdict::Failed:
      return "failed";
    case CheckVerdict::Inconclusive:
      return "inconclusive";
    case CheckVerdict::Skipped:
      return "skipped";
  }
  return "";
}

Judged judge(const Expectation& expectation, const std::vector<Measured>& captures) {
  std::vector<double> values;
  values.reserve(captures.size());
  for (const Measured& one : captures) values.push_back(one.value);
  std::ranges::sort(values);
  Judged made;
  const std::size_t count = values.size();
  made.value = count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
  if (count == 1) {
    made.low = captures[0].low, made.high = captures[0].high;
  } else {
    const std::size_t rank = rank_of_interval(count);
    made.low = values[rank], made.high = values[count - 1 - rank];
  }
  const bool low_holds = expectation.holds(made.low), high_holds = expectation.holds(made.high);
  made.verdict = low_holds && high_holds     ? CheckVerdict::Passed
                 : !low_holds && !high_holds ? CheckVerdict::Failed
                                             : CheckVerdict::Inconclusive;
  return made;
}

Error RuleChecks::error_in(const Rule& rule, const std::string& what) const {
  return Error{fmt::format("{}:{}: {}: {}", printable(rules_->path), rule.line, printable(rule.name), what)};
}

Result<> RuleChecks::add_capture(Session& session, const std::string& name,
                                 const std::function<void(Sink&)>& run) {
  MeasuredCapture capture(session);
  std::vector<Result<std::size_t>> fields(rules_->rules.size(), kNoField);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Rule& rule = rules_->rules[i];
    if (rule.subject != Subject::Field) continue;
    fields[i] = capture.add_field(field_name_of(rule.field, rule.event));
  }
  run(capture);
  capture.finish();
  names_.push_back(name);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    auto made = measure(rules_->rules[i], capture, fields[i]);
    if (!made) return std::move(made.error()).in(printable(name));
    measured_[i].push_back(std::move(*made));
  }
  return Done{};
}

Result<RuleChecks::MeasuredRule> RuleChecks::measure(const Rule& rule, const MeasuredCapture& capture,
                                                     const Result<std::size_t>& field) const {
  MeasuredRule made;
  if (rule.subject == Subject::Capture) {
    for (const Expectation& one : rule.expectations) {
      const bool is_count = one.measure == Measure::Samples;
      if (!is_count && capture.samples() == 0 && capture.lost() == 0) {
        made.push_back(
            {.is_found = false, .is_measured = false, .unit = {}, .evidence = "the capture has no samples"});
        continue;
      }
      made.push_back(exact(is_count                            ? static_cast<double>(capture.samples())
                           : one.measure == Measure::Lost      ? capture.lost()
                           : one.measure == Measure::Truncated ? capture.truncated()
                                                               : capture.symbolized(),
                           is_count ? "samples" : "%"));
    }
    return made;
  }
  // Of each expectation nothing, with the reason.
  const auto nothing = [&rule](const std::string& why, bool is_measured = true) {
    const std::size_t count = std::max<std::size_t>(rule.expectations.size(), 1);
    return MeasuredRule(count,
                        Measured{.is_found = false, .is_measured = is_measured, .unit = {}, .evidence = why});
  };
  if (rule.subject == Subject::Field) {
    if (!field) return nothing(first_line(field.error().what));
    for (const Expectation& one : rule.expectations)
      made.push_back(measure_field(capture.values(*field), capture.unit(*field), one));
    return made;
  }
  const auto event = event_of_rule(rule, capture);
  if (!event && (!rule.event.empty() || capture.samples() == 0)) return nothing(event.error().what, false);
  if (!event) return error_in(rule, event.error().what);
  const auto work = work_in(rule, capture);
  if (!work) return nothing(work.error().what);
  bool has_callers = false;
  const Matching matching = StackRule(rule, capture).add_up(*event, has_callers);
  const MeasuredEvent& of = capture.events()[*event];
  if (rule.subject == Subject::Forbidden) {
    made.push_back(measure_code({.measure = Measure::Samples, .text = {}}, of, matching, 0));
    made.back().is_found = rule.below.empty() || has_callers;
    return made;
  }
  for (const Expectation& one : rule.expectations) made.push_back(measure_code(one, of, matching, *work));
  return made;
}

std::vector<Check> RuleChecks::checks() const {
  std::vector<Check> all;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const Rule& rule = rules_->rules[i];
    const bool is_forbidden = rule.subject == Subject::Forbidden;
    Expectation nowhere;  // of a forbidden function
    nowhere.relation = Relation::LessOrEqual;
    nowhere.text = "is nowhere";
    nowhere.line = rule.line;
    const std::size_t count = is_forbidden ? 1 : rule.expectations.size();
    for (std::size_t k = 0; k < count; ++k) {
      const Expectation& expectation = is_forbidden ? nowhere : rule.expectations[k];
      all.push_back(checked(rule, expectation, measured_[i], k));
    }
  }
  return all;
}

Check RuleChecks::checked(const Rule& rule, const Expectation& expectation,
                          const std::vector<MeasuredRule>& captures, std::size_t number) const {
  Check made;
  made.rule = rule.name;
  made.line = expectation.line;
  made.expectation = expectation.text;
  std::vector<Measured> found;
  for (const MeasuredRule& capture : captures)
    if (capture[number].is_found) found.push_back(capture[number]);
  // What was not measured is no answer, whether the rule may match nothing or not.
  for (const MeasuredRule& capture : captures)
    if (!capture[number].is_measured) {
      made.verdict = CheckVerdict::Failed;
      made.message = capture[number].evidence;
      return made;
    }
  if (found.empty()) {
    const std::string why = captures.empty() ? std::string() : captures.front()[number].evidence;
    made.verdict = rule.is_optional ? CheckVerdict::Skipped : CheckVerdict::Failed;
    made.message = why.empty() ? "nothing matches" : why;
    if (!rule.is_optional) made.message += "; optional = true lets a rule match nothing";
    return made;
  }
  const Judged judged = judge(expectation, found);
  made.verdict = judged.verdict;
  made.value = judged.value, made.low = judged.low, made.high = judged.high;
  made.unit = found.front().unit;
  made.values.reserve(found.size());
  for (const Measured& one : found) made.values.push_back(one.value);
  // Of a forbidden function any capture counts; of a capture's own quality the worst.
  if (rule.subject == Subject::Forbidden || rule.subject == Subject::Capture) {
    const auto worst = expectation.holds(0) ? std::ranges::max_element(found, {}, &Measured::value)
                                            : std::ranges::min_element(found, {}, &Measured::value);
    made.verdict = expectation.holds(worst->value) ? CheckVerdict::Passed : CheckVerdict::Failed;
    made.value = worst->value;
    if (rule.subject == Subject::Capture && found.size() > 1 && found.size() == names_.size())
      made.evidence = "in " + printable(names_[static_cast<std::size_t>(worst - found.begin())]);
    made.low = made.high = made.value;
  }
  const auto heaviest = std::ranges::max_element(found, {}, &Measured::value);
  if (made.verdict == CheckVerdict::Passed)
    made.evidence.clear();
  else if (made.evidence.empty())
    made.evidence = heaviest->evidence;
  made.message = quantity_text(made.value, made.unit);
  if (made.low != made.high)
    made.message +=
        fmt::format(" ({} to {})", quantity_text(made.low, made.unit), quantity_text(made.high, made.unit));
  if (made.verdict == CheckVerdict::Inconclusive)
    made.message += what_would_decide(expectation, judged, found);
  return made;
}

}  // namespace tacho::report
