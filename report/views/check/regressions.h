// Regressions against captures of a base, by the statistics of tacho diff (compare/comparison.h).
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/compare/comparison.h"
#include "report/views/check/checks.h"
#include "report/views/check/rules.h"

namespace tacho::report {

class RegressionCheck {
 public:
  // `rule` must outlive this. `captures`: how many are going to be added.
  RegressionCheck(const RegressionRule& rule, std::size_t captures);

  // All captures of the base come first.
  Result<> add_capture(Session& session, const std::string& name, bool is_of_base, const RunSession& run);
  // A check for each function that got worse; if none did, one about all of them.
  Result<std::vector<Check>> checks();

 private:
  Check check_of(const ComparedEvent& event, const FunctionChange& finding) const;
  Check check_of_all(const ComparedEvent& event) const;
  bool takes(const FunctionChange& finding) const;
  std::string shown_amount(double value) const;

  const RegressionRule* rule_;
  Comparison comparison_;
};

}  // namespace tacho::report
