// A table on its way out: aligned text, CSV, or JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/query/expression_value.h"

namespace tacho::report {

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
