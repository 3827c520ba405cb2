// The result of a query, printed as an aligned table, CSV or JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/database/duckdb.h"
#include "report/output/text_output.h"

namespace tacho::report {

enum class ResultForm : std::uint8_t { Text, Csv, Json };

// Prints the results of one statement after another. A table is kept until its end, for the widths of its
// columns; other forms are printed row by row.
class ResultText {
 public:
  // `out` must outlive this. `room`: the width of a table; 0: no limit.
  ResultText(TextOutput& out, ResultForm form, std::size_t room) : out_(&out), form_(form), room_(room) {}
  SqlReader reader();
  // After the last row.
  void finish() { end_table(); }

 private:
  void begin_table(std::span<const SqlColumn> columns);
  void add_row(std::span<const SqlCell> cells);
  void end_table();

  TextOutput* out_;
  ResultForm form_;
  std::size_t room_;
  bool is_first_ = true;
  std::vector<SqlColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tacho::report
