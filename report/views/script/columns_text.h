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

enum class ColumnsForm : std::uint8_t { Text, Csv, Json };

// The widths of text come from the first lines, which are kept until there are kLinesAhead of them or flush()
// is called; a wider value that comes later widens its column from there on.
class ColumnsText {
 public:
  // `room`: columns of a line of text; 0: no limit.
  ColumnsText(Columns columns, ColumnsForm form, Names names, std::size_t room)
      : columns_(std::move(columns)),
        form_(form),
        names_(names),
        room_(room),
        widths_(columns_.size()),
        needed_(columns_.size()) {}

  bool names_other_places() const { return columns_.names_other_places(); }
  void write(TextOutput& out, const ResolvedSample& sample);
  // Writes what is kept. At the end, and before a long wait.
  void flush(TextOutput& out);

 private:
  static constexpr std::size_t kLinesAhead = 1000;
  static constexpr std::size_t kWidest = 40;  // characters that a column is padded to
  using Line = std::vector<ColumnValue>;

  void write_head(TextOutput& out);
  void write_text(TextOutput& out, std::vector<std::string> cells);
  void write_csv(TextOutput& out, const Line& line);
  void write_json(TextOutput& out, const Line& line);
  std::vector<std::string> shown(const Line& line) const;
  void fit(std::vector<std::string>& cells, std::vector<std::size_t>& widths) const;
  void widen(const std::vector<std::string>& cells);

  Columns columns_;
  ColumnsForm form_;
  Names names_;
  std::size_t room_;
  std::vector<std::size_t> widths_, needed_;  // needed_: by what was shown so far, never padded to
  std::vector<std::vector<std::string>> kept_;
  bool is_begun_ = false;  // the head is written
};

}  // namespace tacho::report
