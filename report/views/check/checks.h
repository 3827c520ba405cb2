// Rules applied to captures: what was measured, and whether it is as each rule expects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "report/views/check/measured_capture.h"
#include "report/views/check/rules.h"

namespace tacho::report {

// Inconclusive: the limit is inside the interval of what was measured, so that the next capture may be on its
// other side. Skipped: an optional rule matches nothing.
enum class CheckVerdict : std::uint8_t { Passed, Failed, Inconclusive, Skipped };
std::string_view check_verdict_name(CheckVerdict verdict);

// What one rule measured in one capture.
struct Measured {
  double value = 0;
  double low = 0, high = 0;   // of the 95 % interval; both are `value` where it is exact
  std::uint64_t samples = 0;  // from which it is known; 0: it is exact
  bool is_found = true;       // something matches
  bool is_measured =
      true;          // the capture has samples in which it could be; else `evidence` says what it lacks
  std::string unit;  // "%", "ns", "bytes", or of a field or event
  std::string evidence = {};  // the heaviest stack that matches, root first; empty: none
};

// An expectation of a rule, or its forbidden function, with all captures.
struct Check {
  std::string rule;  // its name
  std::uint32_t line = 0;
  std::string expectation;  // "share < 12 %"
  CheckVerdict verdict = CheckVerdict::Passed;
  std::string message;  // one line: what is measured, and what was expected
  double value = 0, low = 0, high = 0;
  std::string unit;
  std::vector<double> values;  // one for each capture in which the rule matches
  std::string evidence;
};

class RuleChecks {
 public:
  // `rules` must outlive this.
  explicit RuleChecks(const RuleFile& rules) : rules_(&rules), measured_(rules.rules.size()) {}

  // Reads a capture, whose head was read. `run` passes its samples to a sink. An error names the rule that
  // asks for what the capture does not have.
  Result<> add_capture(Session& session, const std::string& name, const std::function<void(Sink&)>& run);
  std::vector<Check> checks() const;

 private:
  // Of one capture: a value for each expectation of a rule; of Forbidden one.
  using MeasuredRule = std::vector<Measured>;

  Result<MeasuredRule> measure(const Rule& rule, const MeasuredCapture& capture,
                               const Result<std::size_t>& field) const;
  Check checked(const Rule& rule, const Expectation& expectation, const std::vector<MeasuredRule>& captures,
                std::size_t number) const;
  Error error_in(const Rule& rule, const std::string& what) const;

  const RuleFile* rules_;
  std::vector<std::vector<MeasuredRule>> measured_;  // by rule, then by capture
  std::vector<std::string> names_;                   // of the captures
};

// The verdict of an expectation: by the values of several captures and the interval of their median, or by
// the one capture's own interval.
struct Judged {
  CheckVerdict verdict = CheckVerdict::Passed;
  double value = 0, low = 0, high = 0;
};
Judged judge(const Expectation& expectation, const std::vector<Measured>& captures);

// The event of a rule about functions: the one it names, else the only clock, else the only event.
Result<std::size_t> event_of_rule(const Rule& rule, const MeasuredCapture& capture);
// Wilson's 95 % interval of a share that was measured with so many samples; percent.
std::pair<double, double> interval_of_share(double share, double samples);
double number_of(const ExpressionValue& value);  // nothing: 0
// A function's name; "[unknown]" without a symbol.
std::string name_of_function(const Function& function);

}  // namespace tacho::report
