#include "report/compare/field_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "format/base/printable.h"
#include "report/decode/payload.h"

namespace tacho::report {
namespace {

constexpr double kPercentiles[] = {50, 75, 90, 95, 99, 99.9, 99.99};
constexpr double kLeastBeyond = 10;  // values beyond a percentile, so that one slow call does not decide it

class OneFieldSink : public Sink {
 public:
  explicit OneFieldSink(FieldValues& values) : values_(values) {}
  MergeBy merge_by() const override { return MergeBy::Name; }
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    values_.see(sample);
    return Flow::Continue;
  }

 private:
  FieldValues& values_;
};

double as_real(const ExpressionValue& value) {
  return value.kind == ExpressionValue::Kind::Whole ? static_cast<double>(value.whole) : value.real;
}

void scale(Tested& tested, double by) {
  for (double* const number : {&tested.before, &tested.after, &tested.shift, &tested.interval.low,
                               &tested.interval.high, &tested.floor, &tested.detectable})
    *number *= by;
}

}  // namespace

Result<> FieldComparison::add_capture(Session& session, const std::string& name, bool is_after,
                                      const RunSession& run) {
  EventSchemas schemas(session.events(), session.features());
  FieldValues values(session, schemas, "tacho diff BEFORE... --to AFTER...");
  for (const FieldName& one : wanted_)
    if (const auto added = values.add_field(one); !added) return added.error();
  OneFieldSink sink(values);
  run(sink);
  fields_.resize(wanted_.size());
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Field& field = fields_[i];
    const std::string shown = format::printable(values.name(i));
    if (values.values(i).count() == 0) return Error{shown + " has no value"};
    if (captures_.empty()) {
      field.name = values.name(i);
      field.unit = values.unit(i);
    }
    if (field.unit != values.unit(i))
      return Error{fmt::format("the unit of {} is '{}', in other captures it is '{}'", shown,
                               format::printable(values.unit(i)), format::printable(field.unit))};
    field.values.push_back(values.values(i));
  }
  captures_.push_back({name, is_after, 0, environment_facts(session)});
  return Done{};
}

std::vector<ComparedField> FieldComparison::judge() const {
  std::vector<ComparedField> judged;
  for (const Field& field : fields_) judged.push_back(judge(field));
  return judged;
}

ComparedField FieldComparison::judge(const Field& field) const {
  ComparedField made{.name = field.name, .unit = field.unit, .run = {}, .counts = {}, .quantities = {}};
  for (const Summary& one : field.values) made.counts.push_back(one.count());
  const auto fewest = static_cast<double>(*std::ranges::min_element(made.counts));
  std::vector<std::vector<double>> rows;
  std::vector<double> means;  // over all captures, by quantity
  const auto add = [&](std::string name, const auto& value_of) {
    std::vector<double> row;
    for (const Summary& one : field.values) row.push_back(as_real(value_of(one)));
    double mean = 0;  // of absolute values: values of both signs may add up to nothing
    for (const double value : row) mean += std::abs(value) / static_cast<double>(row.size());
    for (double& value : row) value = mean == 0 ? 0 : value / mean;
    means.push_back(mean);
    rows.push_back(std::move(row));
    made.quantities.push_back({std::move(name), test_.minimal_effect * mean, {}});
  };
  add("mean", [](const Summary& one) { return one.mean(); });
  for (const double percent : kPercentiles)
    if (percent == kPercentiles[0] || fewest * (100 - percent) >= 100 * kLeastBeyond)
      add(fmt::format("p{:g}", percent), [percent](const Summary& one) { return one.percentile(percent); });
  const auto before = static_cast<std::size_t>(std::ranges::count(captures_, false, &SideCapture::is_after));
  made.run = compare_sides(rows, before, test_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    made.quantities[i].tested = made.run.of[i];
    scale(made.quantities[i].tested, means[i]);
  }
  made.run.of.clear();
  return made;
}

}  // namespace tacho::report
