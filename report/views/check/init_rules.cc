#include "report/views/check/init_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "report/output/quantity_text.h"
#include "report/views/check/checks.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostFunctions = 5;
constexpr double kLeastShare = 1;  // percent: lighter functions get no rule

// In a basic string of TOML.
std::string toml_text(std::string_view text) {
  std::string made = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + '"';
}

// A name as a pattern for itself: its wildcards stand for themselves.
std::string pattern_of(std::string_view name) {
  std::string made(name);
  std::ranges::replace(made, '*', '?');
  return made;
}

// Rounded up to 1, 2 or 5 times a power of ten.
double round_limit(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (value <= step * power) return step * power;
  return 10 * power;
}

std::string limit_text(double value, const std::string& unit) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kTimes = {
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  if (unit != "ns") return fmt::format("{:.0f}", value);
  for (const auto& [size, name] : kTimes)
    if (value >= size) return fmt::format("{:g} {}", value / size, name);
  return fmt::format("{:g} ns", value);
}

}  // namespace

Result<> InitRules::add_capture(Session& session, const std::string& name,
                                const std::function<void(Sink&)>& run) {
  MeasuredCapture capture(session);
  const std::vector<FieldName> fields = capture.value_fields();
  std::vector<std::size_t> numbers;
  for (const FieldName& field : fields) {
    const auto added = capture.add_field(field);
    if (!added) return added.error();
    numbers.push_back(*added);
  }
  run(capture);
  capture.finish();
  names_.push_back(name);
  samples_ = names_.size() == 1 ? capture.samples() : std::min(samples_, capture.samples());
  lost_ = std::max(lost_, capture.lost());
  symbolized_ = std::min(symbolized_, capture.symbolized());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Summary& values = capture.values(numbers[i]);
    if (values.count() == 0) continue;
    FieldValues& one = fields_[fields[i].event + "." + fields[i].field];
    one.unit = capture.unit(numbers[i]);
    one.count = std::max(one.count, values.count());
    one.percentile = std::max(one.percentile, number_of(values.percentile(99)));
  }
  add_functions(capture);
  return Done{};
}

void InitRules::add_functions(const MeasuredCapture& capture) {
  Rule any;
  any.event = event_;
  const auto event = event_of_rule(any, capture);
  if (!event) return;
  const MeasuredEvent& of = capture.events()[*event];
  event_ = of.name;
  const bool has_periods = of.weight.period > 0;
  const auto all = static_cast<double>(has_periods ? of.weight.period : of.weight.samples);
  std::map<std::string, double> shares;
  capture.each_stack(*event, [&](FunctionStack stack, const Weight& weight) {
    const Function& function = capture.function(stack.front());
    if (function.has_symbol())
      shares[std::string(function.name())] +=
          100 * static_cast<double>(has_periods ? weight.period : weight.samples) / all;
  });
  for (const auto& [name, share] : shares) {
    Share& known = shares_[name];
    known.measured = std::max(known.measured, share);
    known.high =
        std::max(known.high, interval_of_share(share, static_cast<double>(of.weight.samples)).second);
  }
}

void InitRules::write(TextBuffer& out) const {
  out.text("# Rules of tacho check, made by tacho check --init from\n");
  for (const std::string& name : names_) out.text("#   " + printable(name) + "\n");
  out.text(
      "# Limits are above what was measured. Change them to what you promise, and name the rules.\n"
      "# A function that no sample has fails its rule, as it may have been renamed; optional = true lets it "
      "be gone.\n"
      "tacho_check = 1\n\n");
  out.text(fmt::format(
      "# What a capture must be to be judged. Measured: {:.3g} % of samples lost, {:.4g} % of frames with a "
      "name.\n[capture]\nexpect = [\"lost < {:g} %\", \"symbolized > {:.0f} %\", \"samples >= {}\"]\n",
      lost_, symbolized_, std::max(1.0, round_limit(std::max(2 * lost_, 0.01))),
      std::floor(std::max(symbolized_ - 5, 0.0)), std::max<std::uint64_t>(samples_ / 10, 1)));
  write_functions(out);
  write_fields(out);
  out.text(
      "\n# Against captures of a base (--base 'base/*.data', four or more on each side): no function may "
      "cost 3 % of the\n"
      "# total more. With work = 1 costs are compared in place of shares, if each run does the same.\n"
      "# [[regression]]\n# min_effect = \"3 %\"\n# work = 1\n");
}

void InitRules::write_functions(TextBuffer& out) const {
  std::vector<std::pair<std::string, Share>> heaviest(shares_.begin(), shares_.end());
  std::ranges::stable_sort(heaviest, std::greater(), [](const auto& one) { return one.second.measured; });
  heaviest.resize(std::min(heaviest.size(), kMostFunctions));
  for (const auto& [name, share] : heaviest) {
    if (share.measured < kLeastShare) break;
    // Half of what is left, where one and a half times as much would be all.
    const double limit = std::min(std::ceil(1.5 * share.high + 1), std::ceil((share.high + 100) / 2));
    if (limit >= 100) continue;  // it would forbid nothing
    out.text(
        fmt::format("\n# Measured: {:.3g} % without its callees.\n[[rule]]\nfunction = {}\nevent = {}\n"
                    "expect = \"self < {:.0f} %\"\n",
                    share.measured, toml_text(pattern_of(name)), toml_text(event_), limit));
  }
}

void InitRules::write_fields(TextBuffer& out) const {
  for (const auto& [name, values] : fields_) {
    if (values.percentile <= 0) continue;
    out.text(
        fmt::format("\n# Measured: p99 {} of {} values.\n[[rule]]\nfield = {}\nexpect = [\"p99 < {}\"]\n",
                    quantity_text(values.percentile, values.unit), values.count, toml_text(name),
                    limit_text(round_limit(1.5 * values.percentile), values.unit)));
  }
}

}  // namespace tacho::report
