#include "report/views/check/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/base/file.h"
#include "format/base/units.h"

#define TOML_EXCEPTIONS 0
// toml++ asserts what a text from outside may break ("a = ,"), and then refuses the text. With NDEBUG, Clang
// would assume what is asserted.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace tacho::report {
namespace {

constexpr std::int64_t kRulesVersion = 1;
constexpr std::size_t kMostRuleBytes = std::size_t{1} << 20;
constexpr std::string_view kVersionKey = "tacho_check";

struct MeasureRow {
  std::string_view name;
  Measure measure;
  enum class Of : std::uint8_t { Code, Field, Capture, CodeOrCapture } of;
  Expectation::Unit unit;  // None: that of what is measured
};
using Of = MeasureRow::Of;
constexpr auto kNoUnit = Expectation::Unit::None;
constexpr auto kInPercent = Expectation::Unit::Percent;
constexpr MeasureRow kMeasures[] = {
    {"share", Measure::Share, Of::Code, kInPercent},
    {"self", Measure::SelfShare, Of::Code, kInPercent},
    {"cost", Measure::Cost, Of::Code, kNoUnit},
    {"self_cost", Measure::SelfCost, Of::Code, kNoUnit},
    {"samples", Measure::Samples, Of::CodeOrCapture, kNoUnit},
    {"count", Measure::Count, Of::Field, kNoUnit},
    {"sum", Measure::Sum, Of::Field, kNoUnit},
    {"mean", Measure::Mean, Of::Field, kNoUnit},
    {"min", Measure::Least, Of::Field, kNoUnit},
    {"max", Measure::Largest, Of::Field, kNoUnit},
    {"lost", Measure::Lost, Of::Capture, kInPercent},
    {"truncated", Measure::Truncated, Of::Capture, kInPercent},
    {"symbolized", Measure::Symbolized, Of::Capture, kInPercent},
};

Of kind_of(Subject subject) {
  return subject == Subject::Field ? Of::Field : subject == Subject::Capture ? Of::Capture : Of::Code;
}

bool is_measured(const MeasureRow& row, Subject subject) {
  return row.of == kind_of(subject) || (row.of == Of::CodeOrCapture && subject != Subject::Field);
}

std::string measures_of(Subject subject) {
  std::string names;
  for (const MeasureRow& row : kMeasures)
    if (is_measured(row, subject)) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return subject == Subject::Field ? names + ", p50, p99.9" : names;
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<double> parse_plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "2 ms", "12 %", "1.5".
bool parse_limit(std::string_view text, Expectation& into) {
  const std::size_t end = text.find_first_not_of("0123456789.-+e");
  const auto number = parse_plain_number(trimmed(text.substr(0, end)));
  if (!number) return false;
  const std::string_view unit = end == std::string_view::npos ? "" : trimmed(text.substr(end));
  into.limit = *number;
  if (unit.empty()) return true;
  if (unit == "%") {
    into.unit = Expectation::Unit::Percent;
    return true;
  }
  const format::Unit* const known = format::find_unit(unit);
  if (known == nullptr || known->quantity == format::Quantity::None) return false;
  into.unit = known->quantity == format::Quantity::Time ? Expectation::Unit::Time : Expectation::Unit::Size;
  into.limit *= static_cast<double>(known->size);
  return true;
}

struct RelationRow {
  std::string_view sign;
  Relation relation;
};
// The longer ones first.
constexpr RelationRow kRelations[] = {{"<=", Relation::LessOrEqual},
                                      {">=", Relation::MoreOrEqual},
                                      {"<", Relation::Less},
                                      {">", Relation::More}};

Result<> find_measure(std::string_view name, Subject subject, Expectation& into) {
  const auto row = std::ranges::find(kMeasures, name, &MeasureRow::name);
  if (row != std::end(kMeasures) && is_measured(*row, subject)) {
    into.measure = row->measure;
    // 0.5 could mean half of all.
    if (row->unit == kInPercent && into.unit != kInPercent)
      return Error{fmt::format("{} is in percent: write {:g} %", name, into.limit)};
    if (row->unit != kInPercent && into.unit == kInPercent)
      return Error{fmt::format("{} is not in percent", name)};
    return Done{};
  }
  if (subject == Subject::Field && name.starts_with('p')) {
    const auto percent = parse_plain_number(name.substr(1));
    if (percent && *percent > 0 && *percent <= 100) {
      if (into.unit == kInPercent) return Error{fmt::format("{} is not in percent", name)};
      into.measure = Measure::Percentile;
      into.percent = *percent;
      return Done{};
    }
  }
  return Error{fmt::format("'{}' is not measured here; known: {}", cli::printable_message(name),
                           measures_of(subject))};
}

}  // namespace

// A text between slashes.
static bool is_regex(std::string_view text) {
  return text.size() > 2 && text.starts_with('/') && text.ends_with('/');
}

RulePattern::RulePattern(const std::string& text) : wildcards_(is_regex(text) ? "" : text) {
  if (is_regex(text)) regex_ = std::make_unique<NamePattern>(text.substr(1, text.size() - 2));
}

bool RulePattern::matches(std::string_view name) const {
  return regex_ ? regex_->is_in(name) : cli::looks_like(name, wildcards_);
}

bool Expectation::holds(double value) const {
  switch (relation) {
    case Relation::Less:
      return value < limit;
    case Relation::LessOrEqual:
      return value <= limit;
    case Relation::More:
      return value > limit;
    case Relation::MoreOrEqual:
      return value >= limit;
  }
  return false;
}

Result<Expectation> parse_expectation(std::string_view text, Subject subject) {
  Expectation made;
  made.text = cli::printable_message(trimmed(text));
  const auto refused = [&made](std::string_view what) {
    return Error{fmt::format("'{}': {}", made.text, what)};
  };
  for (const RelationRow& row : kRelations) {
    const std::size_t at = text.find(row.sign);
    if (at == std::string_view::npos) continue;
    made.relation = row.relation;
    if (!parse_limit(trimmed(text.substr(at + row.sign.size())), made))
      return refused("the right side is no number, or its unit is not known; write 12 %, 2 ms, 64 KiB or 5");
    if (auto found = find_measure(trimmed(text.substr(0, at)), subject, made); !found)
      return refused(found.error().what);
    return made;
  }
  return refused("an expectation is MEASURE < NUMBER (or <=, >, >=), as in 'share < 12 %'");
}

namespace {

// Reads the tables of one rule file.
class RulesReader {
 public:
  RulesReader(const std::string& path, RuleFile& into) : path_(path), into_(into) {}

  Result<> read(const toml::table& root) {
    if (auto read = read_version(root); !read) return read;
    for (const auto& [key, node] : root) {
      const std::string_view name = key.str();
      if (name == kVersionKey) continue;
      auto read = name == "capture"      ? read_capture(node)
                  : name == "rule"       ? each_table(node, name, &RulesReader::read_rule)
                  : name == "regression" ? each_table(node, name, &RulesReader::read_regression)
                                         : unknown_key(key, {"tacho_check", "capture", "rule", "regression"});
      if (!read) return read;
    }
    if (into_.rules.empty() && into_.regressions.empty())
      return Error{path_ + ": it has no rules: [[rule]], [[regression]] or [capture]"};
    std::ranges::stable_sort(into_.rules, {}, &Rule::line);
    return Done{};
  }

 private:
  using ReadTable = Result<> (RulesReader::*)(const toml::table&, std::uint32_t line);
  // What a key sets.
  struct Key {
    std::string_view name;
    std::function<Result<>(const toml::node&)> read;
  };

  Error error_at(std::uint32_t line, std::string_view what) const {
    return Error{fmt::format("{}:{}: {}", path_, line, what)};
  }
  Error error_at(const toml::node& node, std::string_view what) const {
    return error_at(node.source().begin.line, what);
  }

  Result<> read_version(const toml::table& root) const {
    const toml::node* const node = root.get(kVersionKey);
    if (node == nullptr)
      return Error{fmt::format("{}: {} = {} is missing at its beginning, the version of its rules", path_,
                               kVersionKey, kRulesVersion)};
    const auto version = node->value_exact<std::int64_t>();
    if (!version || *version != kRulesVersion)
      return error_at(*node, fmt::format("this tacho knows version {} of rules", kRulesVersion));
    return Done{};
  }

  Result<> unknown_key(const toml::key& key, const std::vector<std::string>& known) const {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return error_at(key.source().begin.line,
                    fmt::format("'{}' is no key here{}; known: {}", cli::printable_message(key.str()),
                                cli::suggestion(key.str(), known), names));
  }

  Result<> each_table(const toml::node& node, std::string_view name, ReadTable read) {
    const toml::array* const tables = node.as_array();
    if (tables == nullptr || tables->empty())
      return error_at(node, fmt::format("{} is a list of tables: [[{}]]", name, name));
    for (const toml::node& one : *tables) {
      const toml::table* const table = one.as_table();
      if (table == nullptr) return error_at(one, fmt::format("{} is a list of tables: [[{}]]", name, name));
      if (auto done = (this->*read)(*table, one.source().begin.line); !done) return done;
    }
    return Done{};
  }

  Result<> read_keys(const toml::table& table, std::span<const Key> keys) const {
    for (const auto& [key, node] : table) {
      const auto known = std::ranges::find(keys, key.str(), &Key::name);
      if (known == keys.end()) {
        std::vector<std::string> names;
        for (const Key& one : keys) names.emplace_back(one.name);
        return unknown_key(key, names);
      }
      if (auto done = known->read(node); !done) return done;
    }
    return Done{};
  }

  // Keys by the kind of their value.
  Key text(std::string_view name, std::string& into) const {
    return {name, [this, name, &into](const toml::node& node) -> Result<> {
              const auto value = node.value_exact<std::string_view>();
              if (!value || value->empty()) return error_at(node, fmt::format("{} is a text", name));
              into = *value;
              return Done{};
            }};
  }
  Key flag(std::string_view name, bool& into) const {
    return {name, [this, name, &into](const toml::node& node) -> Result<> {
              const auto value = node.value_exact<bool>();
              if (!value) return error_at(node, fmt::format("{} is true or false", name));
              into = *value;
              return Done{};
            }};
  }
  // `most`: the largest value.
  Key number(std::string_view name, double most, double& into) const {
    return {name, [this, name, most, &into](const toml::node& node) -> Result<> {
              const auto value = node.value<double>();
              if (!value || !std::isfinite(*value) || *value <= 0 || *value > most)
                return error_at(
                    node, fmt::format("{} is a number above 0, up to {:g}, without quotes", name, most));
              into = *value;
              return Done{};
            }};
  }
  // "3 %", or 3.
  Key percent(std::string_view name, double& into) const {
    return {name, [this, name, &into](const toml::node& node) -> Result<> {
              Expectation limit;
              const auto words = node.value_exact<std::string_view>();
              const auto bare = words ? std::nullopt : node.value<double>();
              const bool is_read = words ? parse_limit(trimmed(*words), limit) : bare.has_value();
              const double value = words ? limit.limit : bare.value_or(0);
              const bool is_percent = limit.unit == Expectation::Unit::None || limit.unit == kInPercent;
              if (!is_read || !is_percent || value <= 0 || value > 100)
                return error_at(node, fmt::format("{} is a percentage above 0, as in \"3 %\"", name));
              into = value;
              return Done{};
            }};
  }
  // One text, or a list of texts.
  Key texts(std::string_view name, std::vector<std::pair<std::string, std::uint32_t>>& into) const {
    return {name, [this, name, &into](const toml::node& node) -> Result<> {
              const auto add = [&](const toml::node& one) -> Result<> {
                const auto value = one.value_exact<std::string_view>();
                if (!value || value->empty())
                  return error_at(one, fmt::format("{} is a text or a list of texts", name));
                into.emplace_back(*value, one.source().begin.line);
                return Done{};
              };
              const toml::array* const list = node.as_array();
              if (list == nullptr) return add(node);
              if (list->empty()) return error_at(node, fmt::format("{} is empty", name));
              for (const toml::node& one : *list)
                if (auto added = add(one); !added) return added;
              return Done{};
            }};
  }

  using Texts = std::vector<std::pair<std::string, std::uint32_t>>;

  Result<> read_expectations(const Texts& expect, Rule& rule) const {
    for (const auto& [text, line] : expect) {
      auto made = parse_expectation(text, rule.subject);
      if (!made) return error_at(line, made.error().what);
      const bool is_cost = made->measure == Measure::Cost || made->measure == Measure::SelfCost;
      if (is_cost && rule.per.empty() && rule.work == 0)
        return error_at(line,
                        fmt::format("'{}': a cost is of a unit of work: per = \"EVENT\" counts units, or "
                                    "work = N says how many each capture has",
                                    made->text));
      made->line = line;
      rule.expectations.push_back(std::move(*made));
    }
    return Done{};
  }

  Result<> read_capture(const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return error_at(node, "capture is a table: [capture]");
    Rule rule;
    rule.name = "capture";
    rule.line = node.source().begin.line;
    rule.subject = Subject::Capture;
    Texts expect;
    const std::array keys = {text("name", rule.name), texts("expect", expect)};
    if (auto read = read_keys(*table, keys); !read) return read;
    if (expect.empty()) return error_at(rule.line, "[capture] lacks expect = \"...\"");
    if (auto read = read_expectations(expect, rule); !read) return read;
    into_.rules.push_back(std::move(rule));
    return Done{};
  }

  Result<> read_rule(const toml::table& table, std::uint32_t line) {
    Rule rule;
    rule.line = line;
    std::string function, module, forbidden;
    Texts stack, expect;
    const std::array keys = {
        text("name", rule.name),         text("function", function),         text("module", module),
        texts("stack", stack),           text("forbidden", forbidden),       text("field", rule.field),
        text("below", rule.below),       text("event", rule.event),          text("per", rule.per),
        number("work", 1e18, rule.work), flag("optional", rule.is_optional), texts("expect", expect)};
    if (auto read = read_keys(table, keys); !read) return read;
    const std::array<std::pair<bool, Subject>, 5> subjects = {{{!function.empty(), Subject::Functions},
                                                               {!module.empty(), Subject::Modules},
                                                               {!stack.empty(), Subject::Stacks},
                                                               {!forbidden.empty(), Subject::Forbidden},
                                                               {!rule.field.empty(), Subject::Field}}};
    if (std::ranges::count(subjects, true, &std::pair<bool, Subject>::first) != 1)
      return error_at(line, "a rule has one of function, module, stack, forbidden and field");
    rule.subject = std::ranges::find(subjects, true, &std::pair<bool, Subject>::first)->second;
    for (std::string* const one : {&function, &module, &forbidden})
      if (!one->empty()) rule.patterns.push_back(*one);
    for (auto& [text, at] : stack) rule.patterns.push_back(std::move(text));
    if (auto sound = check_rule(rule, expect.empty()); !sound) return sound;
    if (auto sound = check_patterns(rule.patterns, rule.below, line); !sound) return sound;
    if (rule.name.empty()) rule.name = usual_name(rule);
    if (auto read = read_expectations(expect, rule); !read) return read;
    into_.rules.push_back(std::move(rule));
    return Done{};
  }

  Result<> check_patterns(std::span<const std::string> patterns, const std::string& below,
                          std::uint32_t line) const {
    const auto check = [&](const std::string& pattern) -> Result<> {
      const RulePattern made(pattern);
      if (made.is_sound()) return Done{};
      return error_at(line, fmt::format("'{}': {}", cli::printable_message(pattern), made.fault()));
    };
    for (const std::string& pattern : patterns)
      if (auto sound = check(pattern); !sound) return sound;
    return check(below);
  }

  Result<> check_rule(const Rule& rule, bool has_no_expectation) const {
    const bool is_of_code = rule.subject == Subject::Functions || rule.subject == Subject::Forbidden;
    if (!rule.below.empty() && !is_of_code)
      return error_at(rule.line, "below is for function and forbidden; a stack lists its callers itself");
    if (rule.subject == Subject::Forbidden && !has_no_expectation)
      return error_at(rule.line, "a forbidden function has no expect: it must not be there");
    if (rule.subject != Subject::Forbidden && has_no_expectation)
      return error_at(rule.line, fmt::format("expect = \"...\" is missing: {}", measures_of(rule.subject)));
    if (!rule.per.empty() && rule.work != 0)
      return error_at(rule.line, "per counts units of work, and work says their number: give one of them");
    return Done{};
  }

  static std::string usual_name(const Rule& rule) {
    if (rule.subject == Subject::Field) return rule.field;
    std::string name = rule.subject == Subject::Forbidden ? "no " : "";
    for (const std::string& pattern : rule.patterns)
      name += (&pattern == &rule.patterns.front() ? "" : " > ") + pattern;
    return rule.below.empty() ? name : name + " below " + rule.below;
  }

  Result<> read_regression(const toml::table& table, std::uint32_t line) {
    RegressionRule rule;
    rule.line = line;
    const std::array keys = {text("name", rule.name),
                             text("event", rule.event),
                             text("field", rule.field),
                             text("function", rule.functions),
                             text("per", rule.per),
                             number("work", 1e18, rule.work),
                             percent("min_effect", rule.min_effect),
                             percent("alpha", rule.alpha),
                             flag("optional", rule.is_optional),
                             flag("paired", rule.is_paired)};
    if (auto read = read_keys(table, keys); !read) return read;
    if (!rule.per.empty() && rule.work != 0)
      return error_at(line, "per counts units of work, and work says their number: give one of them");
    if (rule.work != std::floor(rule.work)) return error_at(line, "work is a whole number here");
    if (rule.alpha < 0.5)
      return error_at(line, "alpha is a percentage, at least 0.5: alpha = \"5 %\" is a rate of 0.05");
    if (!rule.field.empty() && (!rule.functions.empty() || !rule.per.empty() || rule.work != 0))
      return error_at(line, "field compares values in place of costs: leave out function, per and work");
    if (auto sound = check_patterns({}, rule.functions, line); !sound) return sound;
    const std::string of = rule.field.empty() ? rule.functions : rule.field;
    if (rule.name.empty()) rule.name = of.empty() ? "no regression" : "no regression of " + of;
    into_.regressions.push_back(std::move(rule));
    return Done{};
  }

  std::string path_;  // safe to print
  RuleFile& into_;
};

}  // namespace

Result<RuleFile> parse_rules(std::string_view text, const std::string& path) {
  RuleFile made;
  made.path = path;
  const std::string shown = cli::printable_message(path);
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed)
    return Error{fmt::format("{}:{}: {}", shown, parsed.error().source().begin.line,
                             cli::printable_message(parsed.error().description()))};
  if (auto read = RulesReader(shown, made).read(parsed.table()); !read) return std::move(read.error());
  return made;
}

Result<RuleFile> read_rules(const std::string& path) {
  auto bytes = format::read_file(path, kMostRuleBytes + 1);
  if (!bytes) return std::move(bytes.error());
  if (bytes->size() > kMostRuleBytes) return Error{path + ": it is larger than 1 MiB, so it is no rule file"};
  return parse_rules({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path);
}

}  // namespace tacho::report
