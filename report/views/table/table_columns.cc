#include "report/views/table/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "report/samples/filter.h"

namespace tacho::report {
namespace {

using Of = TableColumn::Of;

constexpr std::pair<std::string_view, Of> kNames[] = {
    {"count", Of::Count}, {"sum", Of::Sum},     {"mean", Of::Mean},         {"avg", Of::Mean},
    {"min", Of::Least},   {"max", Of::Largest}, {"median", Of::Percentile},
};

// "p99.9" -> 99.9
std::optional<double> percent_of(std::string_view name) {
  if (!name.starts_with('p')) return std::nullopt;
  name.remove_prefix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), percent);
  const bool is_whole = error == std::errc{} && end == name.data() + name.size();
  return is_whole && percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

}  // namespace

ExpressionValue TableColumn::value(const TableRow& row) const {
  switch (of) {
    case Of::Count:
      return ExpressionValue::of(row.samples);
    case Of::Sum:
      return row.values.sum();
    case Of::Mean:
      return row.values.mean();
    case Of::Least:
      return row.values.least();
    case Of::Largest:
      return row.values.largest();
    case Of::Percentile:
      break;
  }
  return row.values.percentile(percent);
}

Result<std::vector<TableColumn>> parse_columns(std::string_view option, std::string_view text) {
  std::vector<TableColumn> columns;
  for (const std::string& name : parse_name_list(text)) {
    const auto row = std::ranges::find(kNames, name, &std::pair<std::string_view, Of>::first);
    if (row != std::end(kNames)) {
      columns.push_back({name, row->second, 50});
    } else if (const auto percent = percent_of(name)) {
      columns.push_back({name, Of::Percentile, *percent});
    } else {
      return use_error(std::string(option) + ": there is no column '" + name +
                       "'; there are count, sum, mean, min, max, median, and percentiles as p99 or p99.9");
    }
  }
  return columns;
}

std::string show_number(const ExpressionValue& value) {
  if (value.kind == ExpressionValue::Kind::Real) return fmt::format("{:.3f}", value.real);
  if (value.kind == ExpressionValue::Kind::Whole) return fmt::format("{}", value.whole);
  return "-";
}

}  // namespace tacho::report
