// The tables of a capture for databases, and their rows as text: CSV or newline-delimited JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "report/output/text_output.h"

namespace tacho::report {

enum class TableId : std::uint8_t { Captures, Samples, Stacks, Frames, Events, Losses };
inline constexpr std::size_t kTables = 6;

struct TableLayout {
  std::string_view name;
  std::span<const std::string_view> columns;
};
// By TableId. docs/fleet.md describes the columns; fleet/ has their types.
std::span<const TableLayout, kTables> table_layouts();
inline const TableLayout& layout_of(TableId table) {
  return table_layouts()[static_cast<std::size_t>(table)];
}

enum class RowFormat : std::uint8_t { Csv, Json };

// Appends rows to a buffer. The values of a row come in the order of the table's columns. Texts are made safe
// to print (printable()): databases refuse what is not UTF-8.
class RowWriter {
 public:
  RowWriter(RowFormat form, const TableLayout& layout) : form_(form), layout_(&layout) {}

  void head();  // CSV: the names of the columns
  void number(std::uint64_t value);
  void signed_number(std::int64_t value);
  void text(std::string_view value);
  void word(std::string_view value);  // letters and digits only
  void list(std::span<const std::uint64_t> values);
  void json(std::string_view value);  // JSON: as it is; CSV: as text
  void end_row();

  TextBuffer& buffer() { return buffer_; }

 private:
  void begin_value();
  void quoted(std::string_view safe);

  RowFormat form_;
  const TableLayout* layout_;
  std::size_t column_ = 0;
  TextBuffer buffer_;
};

}  // namespace tacho::report
