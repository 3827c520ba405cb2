// A table on its way out: aligned text, CSV, or JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/query/expression_value.h"
#include "report/query/summary.h"

namespace tacho::report {

// The columns of `tacho table` behind its keys: statistics of the values of a row.

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

enum class TableForm : std::uint8_t { Text, Csv, Json };

struct TableKey {
  std::string text;        // as it is shown
  bool is_number = false;  // and JSON may have it as one
};

struct TableLine {
  std::vector<TableKey> keys;
  std::vector<ExpressionValue> numbers;
};

struct TableHead {
  std::vector<std::string> keys, numbers;  // names of columns
  std::string title;                       // "bigread: bytes in bytes"; of text only
  std::size_t room = 0;                    // that text fits into; 0: no limit
  bool has_begin = false;                  // CSV: a first column for the start of an interval
};

// Lines of one interval; `begin` in seconds with --interval. Names are safe already.
void write_table(TextOutput& out, TableForm form, const TableHead& head, std::optional<double> begin,
                 const std::vector<TableLine>& lines, bool is_first);

}  // namespace tacho::report
