// A table in perf's form: a line of headers, a line of dots, rows; columns stand two blanks apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"

namespace tacho::report {

struct TableColumn {
  std::string header;
  std::size_t width = 0;
  bool is_header_right = false;
  bool is_cut = false;  // cells are cut to the width, and padded in the last column as well
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  void write_head(TextBuffer& out) const;
  // One cell for each column.
  void write_row(TextBuffer& out, const std::vector<std::string>& cells) const;

 private:
  std::vector<TableColumn> columns_;
};

}  // namespace tacho::report
