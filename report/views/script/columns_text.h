// Samples as lines of columns: aligned text, CSV, or JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/output/printable.h"
#include "report/output/text_output.h"
#include "report/views/script/columns.h"

namespace tacho::report {

enum class ColumnForm : std::uint8_t { Text, Csv, Json };

// The widths of text come from the first lines, which are kept until there are kLinesAhead of them or flush()
// is called; a wider value that comes later widens its column from there on.
class ColumnsText {
 public:
  ColumnsText(Columns columns, ColumnForm form, Names names)
      : columns_(std::move(columns)), form_(form), names_(names), widths_(columns_.size()) {}

  bool names_other_places() const { return columns_.names_other_places(); }
  void write(TextOutput& out, const ResolvedSample& sample);
  // Writes what is kept. At the end, and before a long wait.
  void flush(TextOutput& out);

 private:
  static constexpr std::size_t kLinesAhead = 1000;
  static constexpr std::size_t kWidest = 40;  // characters that a column is padded to
  using Line = std::vector<ColumnValue>;

  void write_head(TextOutput& out);
  void write_text(TextOutput& out, const std::vector<std::string>& cells);
  void write_csv(TextOutput& out, const Line& line);
  void write_json(TextOutput& out, const Line& line);
  std::vector<std::string> shown(const Line& line) const;
  void widen(const std::vector<std::string>& cells);

  Columns columns_;
  ColumnForm form_;
  Names names_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> kept_;
  bool is_begun_ = false;  // the head is written
};

}  // namespace tacho::report
