// The values of a field on two sides of captures: which of its percentiles changed, by the statistics of
// statistics.h. Prints nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/compare/comparison.h"
#include "report/compare/statistics.h"
#include "report/profile/stack_names.h"
#include "report/query/field_values.h"
#include "report/samples/session.h"

namespace tacho::report {

// One quantity of the field's values, in the field's unit.
struct ComparedQuantity {
  std::string name;  // "p99"
  double minimal_effect = 0;
  Tested tested;
};

struct ComparedField {
  std::string name, unit;             // "open.lat_ns", "ns"
  TestedRun run;                      // without `of`; `detectable` is a part of a quantity
  std::vector<std::uint64_t> counts;  // of values, by capture
  std::vector<ComparedQuantity> quantities;
};

// Some fields, each tested by itself.
class FieldComparison {
 public:
  // `test.minimal_effect`: a part of each quantity (of its mean over all captures).
  FieldComparison(std::vector<FieldName> fields, const TestOptions& test)
      : wanted_(std::move(fields)), test_(test) {}

  // Adds a capture: all of one side, then those of the other. An error: it lacks a field, or its values.
  Result<> add_capture(Session& session, const std::string& name, bool is_after, const RunSession& run);

  const std::vector<SideCapture>& captures() const { return captures_; }
  const TestOptions& test() const { return test_; }
  // After the captures, of which there is at least one a side: for each field its mean, median, and those
  // percentiles that every capture has ten values beyond.
  std::vector<ComparedField> judge() const;

 private:
  struct Field {
    std::string name, unit;
    std::vector<Summary> values;  // by capture
  };
  ComparedField judge(const Field& field) const;

  std::vector<FieldName> wanted_;
  TestOptions test_;
  std::vector<SideCapture> captures_;
  std::vector<Field> fields_;  // as wanted_
};

}  // namespace tacho::report
