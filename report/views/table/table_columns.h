// The columns of `tacho table` behind its keys: statistics of the values of a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/query/summary.h"

namespace tacho::report {

// The samples of one row, and the values of the samples that have one.
struct TableRow {
  std::uint64_t samples = 0;
  Summary values;
};

struct TableColumn {
  enum class Of : std::uint8_t { Count, Sum, Mean, Least, Largest, Percentile };
  std::string name;  // "p99"
  Of of = Of::Count;
  double percent = 0;  // of a Percentile
  ExpressionValue value(const TableRow& row) const;
};

// "count,sum,min,mean,p50,p99.9,max". An error of the use names what there is.
Result<std::vector<TableColumn>> parse_columns(std::string_view option, std::string_view text);

// As it stands in a table: whole numbers as they are, others with three decimals; "-" for nothing.
std::string show_number(const ExpressionValue& value);

}  // namespace tacho::report
