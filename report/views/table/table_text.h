// Prints a table as aligned text, CSV or JSON lines, with the statistics that its columns show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/query/expressions.h"

namespace tacho::report {

// One row: its samples, and the values of those samples that have one.
struct TableRow {
  std::uint64_t samples = 0;
  Summary values;
};

// A column behind the keys: one statistic of a row's values.
struct TableColumn {
  enum class Of : std::uint8_t { Count, Sum, Mean, Least, Largest, Percentile };
  std::string name;  // "p99"
  Of of = Of::Count;
  double percent = 0;  // of a Percentile
  ExpressionValue value(const TableRow& row) const;
};

// Parses "count,sum,min,mean,p50,p99.9,max". An error lists the columns that exist.
Result<std::vector<TableColumn>> parse_columns(std::string_view option, std::string_view text);

// A cell of a table: integers as they are, other numbers with three decimals, "-" for nothing.
std::string show_number(const ExpressionValue& value);

enum class TableForm : std::uint8_t { Text, Csv, Json };

struct TableKey {
  std::string text;        // as it is printed
  bool is_number = false;  // JSON gets a number
};

struct TableLine {
  std::vector<TableKey> keys;
  std::vector<ExpressionValue> numbers;
};

struct TableHead {
  std::vector<std::string> keys, numbers;  // names of columns
  std::string title;                       // "bigread: bytes in bytes"; text form only
  std::size_t room = 0;                    // width of the text form; 0: no limit
  bool has_begin = false;                  // CSV: a first column for the start of an interval
};

// Prints the lines of one interval; `begin` (seconds) is set with --interval. Names are safe to print
// already.
void write_table(TextOutput& out, TableForm form, const TableHead& head, std::optional<double> begin,
                 const std::vector<TableLine>& lines, bool is_first);

}  // namespace tacho::report
