// LiveTable: the table of a recorder in tacho top. Rows of `tacho table` with a cursor, sorted by any column
// and filtered by their keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/views/table/table_counts.h"
#include "report/views/tui/browser.h"
#include "report/views/tui/pages.h"

namespace tacho::report {

class LiveTable : private BrowsedRows {
 public:
  LiveTable() : browser_(*this) {}
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  // Shows these rows; the cursor's row and the sort order are kept. Buckets: the last key of each row is the
  // number of a power of two (Distribution), and rows with equal other keys are shown as a histogram, with
  // empty buckets.
  enum class Form : std::uint8_t { Table, Buckets };
  void update(const TableCounts& counts, const TableCounts::Rows& rows, Form form);
  // Shown after the title: "last 20 s".
  void note(std::string note) { note_ = std::move(note); }
  void say(std::string message) { message_ = std::move(message); }

  // Open: open the row at the cursor. All: show all functions.
  enum class Flow : std::uint8_t { Stay, Open, All, Quit };
  Flow on_key(const KeyPress& press);
  Frame draw(ScreenSize size);
  // Whether a question or a page is open, which gets all keys; rows are not refreshed then.
  bool is_held() const { return question_.has_value() || page_.has_value(); }

  // The keys of the row at the cursor; nullopt: there is no row.
  std::optional<TableCounts::Keys> keys_here() const;
  // "call read, error OK"
  std::string text_here() const;

 private:
  struct Row {
    TableCounts::Keys keys;
    std::vector<std::string> texts;
    std::vector<ExpressionValue> numbers;
    std::string bar;  // of a histogram
  };
  void add_row(Row row);
  void add_table(const TableCounts& counts, const TableCounts::Rows& rows);
  void add_buckets(const TableCounts::Rows& rows, std::size_t keys);
  void show();
  void fit(std::size_t width);
  const Row* row_here() const;  // at the cursor; null: there is no row
  Flow open_here();

  std::size_t size() const override { return shown_.size(); }
  std::vector<BrowsedColumn> columns() const override;
  std::vector<Cell> cells(std::size_t row) const override;
  std::string identity(std::size_t row) const override;
  bool has_graph(std::size_t) const override { return false; }
  std::vector<BrowsedNode> graph(std::size_t) const override { return {}; }

  TableHead head_;
  Form form_ = Form::Table;
  std::vector<Row> rows_;                                // in the order of the table
  std::vector<std::size_t> shown_;                       // of rows_
  std::vector<std::size_t> key_widths_, number_widths_;  // columns of the screen
  std::size_t numbers_ = 0;                              // number columns that fit beside the keys
  std::optional<std::size_t> order_;                     // a column, keys first; nullopt: the table's order
  std::string filter_, note_, message_;
  Browser browser_;
  std::optional<Question> question_;
  std::optional<TextPage> page_;
};

}  // namespace tacho::report
