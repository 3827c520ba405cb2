#include "report/database/result_text.h"

#include <algorithm>

#include "cli/text_table.h"
#include "report/output/field_sinks.h"

namespace tacho::report {
namespace {

constexpr std::string_view kNull = "-";

// What JSON takes as a number: not "nan", "inf".
bool is_json_number(std::string_view text) {
  return !text.empty() && text[0] != '+' &&
         text.find_first_not_of("0123456789.-+e") == std::string_view::npos;
}

}  // namespace

SqlReader ResultText::reader() {
  return {.head = [this](std::span<const SqlColumn> columns) { begin_table(columns); },
          .row = [this](std::span<const SqlCell> cells) { add_row(cells); }};
}

void ResultText::begin_table(std::span<const SqlColumn> columns) {
  end_table();
  columns_.assign(columns.begin(), columns.end());
  for (SqlColumn& column : columns_) column.name = printable(column.name);
  if (form_ != ResultForm::Csv) return;
  if (!is_first_) out_->end_line();
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out_->text((i == 0 ? "" : ",") + printable_csv(columns_[i].name));
  out_->end_line();
  is_first_ = false;
}

void ResultText::add_row(std::span<const SqlCell> cells) {
  if (form_ == ResultForm::Text) {
    auto& row = rows_.emplace_back();
    for (const SqlCell& cell : cells) row.push_back(cell ? printable(*cell) : std::string(kNull));
    return;
  }
  if (form_ == ResultForm::Csv) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_->character(',');
      if (cells[i]) out_->text(printable_csv(*cells[i]));
    }
    return out_->end_line();
  }
  JsonFields row(*out_);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i]) {
      row.json(columns_[i].name, "null");
    } else if (columns_[i].is_number && is_json_number(*cells[i])) {
      row.json(columns_[i].name, *cells[i]);
    } else {
      row.printed(columns_[i].name, printable(*cells[i]));
    }
  }
  row.finish();
  out_->end_line();
}

void ResultText::end_table() {
  if (form_ != ResultForm::Text || columns_.empty()) return;
  if (!is_first_) out_->end_line();
  is_first_ = false;
  std::vector<cli::TableColumn> columns;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = cli::shown_width(columns_[i].name);
    for (const auto& row : rows_) width = std::max(width, cli::shown_width(row[i]));
    using Kind = cli::TableColumn::Kind;
    columns.push_back({.title = columns_[i].name,
                       .kind = columns_[i].is_number ? Kind::Number : Kind::Name,
                       .width = width,
                       .gap = i == 0 ? std::size_t{0} : std::size_t{2}});
  }
  // A row of one cell would get a line for itself, which it is.
  out_->text(cli::text_table(columns, std::move(rows_), room_));
  out_->line_end();
  rows_.clear();
  columns_.clear();
}

}  // namespace tacho::report
