// The rules of tacho check: what a rule file asks of captures. A rule file is TOML:
//
//   tacho_check = 1                    # the version of this schema
//
//   [capture]                          # what each capture must be
//   expect = ["lost < 0.1 %", "symbolized > 95 %"]
//
//   [[rule]]
//   name = "parsing"
//   function = "json::parse*"          # or module, or stack = ["main", "render", "*alloc"], or field
//   expect = "share < 12 %"
//
//   [[rule]]
//   forbidden = "malloc"
//   below = "render"
//
//   [[regression]]                     # against the captures of --base
//   min_effect = "3 %"
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/profile/name_pattern.h"

namespace tacho::report {

enum class Measure : std::uint8_t {
  Share,      // percent of the event's weight in stacks that match, callees included
  SelfShare,  // the same without callees
  Cost,       // weight for each unit of work (`per`, `work`)
  SelfCost,
  Samples,  // number of samples that match
  // Of a field's values:
  Count,
  Sum,
  Mean,
  Least,
  Largest,
  Percentile,
  // Of a capture, percent:
  Lost,        // of the samples
  Truncated,   // of the stacks
  Symbolized,  // of the frames
};

enum class Relation : std::uint8_t { Less, LessOrEqual, More, MoreOrEqual };

// "p99 < 2 ms".
struct Expectation {
  Measure measure = Measure::Share;
  double percent = 0;  // of a Percentile
  Relation relation = Relation::Less;
  double limit = 0;  // in percent, ns, bytes, or the unit of what is measured
  enum class Unit : std::uint8_t { None, Percent, Time, Size } unit = Unit::None;
  std::string text;
  std::uint32_t line = 0;  // in the rule file

  bool holds(double value) const;
};

// What a rule is about.
enum class Subject : std::uint8_t { Functions, Modules, Stacks, Forbidden, Field, Capture };

// A pattern for names of functions and modules: * and ? are wildcards; "/.../" is an extended regular
// expression for a part of the name.
class RulePattern {
 public:
  explicit RulePattern(const std::string& text);
  bool is_sound() const { return !regex_ || regex_->is_sound(); }
  std::string fault() const { return regex_ ? regex_->fault() : std::string(); }
  bool matches(std::string_view name) const;

 private:
  std::string wildcards_;
  std::unique_ptr<NamePattern> regex_;  // null: none
};

struct Rule {
  std::string name;
  std::uint32_t line = 0;  // in the rule file
  Subject subject = Subject::Functions;
  // A function, or a module; of Stacks functions that are in a stack in this order, callers first.
  std::vector<std::string> patterns;  // see RulePattern
  std::string below;  // of Forbidden and Functions: only in stacks with this caller; empty: in all
  std::string event;  // empty: the only one that has what the rule needs
  std::string field;
  std::string per;                        // of a cost: the event that counts units of work
  double work = 0;                        // units of work in each capture; 0: not given
  bool is_optional = false;               // it may match nothing
  std::vector<Expectation> expectations;  // all of them must hold; of Forbidden none
};

// No function costs more than in the captures of --base, or no percentile of a field is larger.
struct RegressionRule {
  std::string name;
  std::uint32_t line = 0;
  std::string field;  // its values are compared in place of functions' costs: none is larger; empty: costs
  std::string event;  // empty: all, each by itself
  std::string per;
  double work = 0;
  std::string functions;     // see RulePattern; empty: all
  double min_effect = 3;     // percent of the total
  double alpha = 5;          // percent
  bool is_optional = false;  // `functions` may match nothing
  bool is_paired = false;    // the n-th capture belongs to the n-th one of the base
};

struct RuleFile {
  std::string path;
  std::vector<Rule> rules;
  std::vector<RegressionRule> regressions;
};

// `path`: for messages, which name the line: "rules.toml:7: ...".
Result<RuleFile> parse_rules(std::string_view text, const std::string& path);
// Of a file. An error if it is larger than 1 MiB.
Result<RuleFile> read_rules(const std::string& path);

// "share < 12 %"; the error says what is possible.
Result<Expectation> parse_expectation(std::string_view text, Subject subject);

}  // namespace tacho::report
