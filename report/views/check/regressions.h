// Regressions against captures of a base, by the statistics of tacho diff (compare/comparison.h and
// field_comparison.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/compare/comparison.h"
#include "report/compare/field_comparison.h"
#include "report/views/check/checks.h"
#include "report/views/check/rules.h"

namespace tacho::report {

class RegressionCheck {
 public:
  // `rule` must outlive this. `captures`: how many are going to be added.
  RegressionCheck(const RegressionRule& rule, std::size_t captures);

  // All captures of the base come first.
  Result<> add_capture(Session& session, const std::string& name, bool is_of_base, const RunSession& run);
  // A check for each function, or measure of the field, that got worse; if none did, one about all of them.
  Result<std::vector<Check>> checks();
  // What differs between the captures besides the program.
  std::vector<std::string> notes() const;

 private:
  // What was tested together: an event's functions, or the measures of a field.
  struct Tests {
    const TestedRun& run;
    std::string of, noun, minimal, detectable;  // noun: "function"; effects as texts
  };
  void check_functions(const ComparedEvent& event, std::vector<Check>& all) const;
  void check_field(const ComparedField& field, std::vector<Check>& all) const;
  Check made_for(const std::string& of, CheckVerdict verdict, std::string message) const;
  // `is_undecided`: one of them may be worse.
  Check without_failures(const Tests& tests, bool is_undecided) const;
  // `causes`: functions that are said themselves.
  bool is_regression(const FunctionChange& change, const std::vector<std::uint32_t>& causes) const;
  std::span<const SideCapture> captures() const;

  const RegressionRule* rule_;
  Comparison comparison_;
  std::optional<FieldComparison> fields_;  // of a rule about a field, in place of the comparison
  std::string missing_;                    // why a capture has no value of the field; empty: all have
};

}  // namespace tacho::report
