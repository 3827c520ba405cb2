#include "report/views/script/columns_text.h"

#include <algorithm>

#include "report/output/field_sinks.h"
#include "report/output/fit.h"

namespace tacho::report {
namespace {

constexpr std::size_t kGap = 1;  // blanks between columns

}  // namespace

void ColumnsText::write(TextOutput& out, const ResolvedSample& sample) {
  if (!columns_.has_line(sample.event_index)) return;
  Line line;
  line.reserve(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) line.push_back(columns_.cell(i, sample));
  if (form_ == ColumnsForm::Csv) return write_csv(out, line);
  if (form_ == ColumnsForm::Json) return write_json(out, line);
  auto cells = shown(line);
  if (is_begun_) {
    widen(cells);
    return write_text(out, cells);
  }
  kept_.push_back(std::move(cells));
  if (kept_.size() == kLinesAhead) flush(out);
}

void ColumnsText::flush(TextOutput& out) {
  if (kept_.empty()) return;
  // More may come: what usually comes has room.
  for (std::size_t i = 0; i < widths_.size(); ++i)
    widths_[i] = std::max(columns_.name(i).size(), columns_.usual_width(i));
  for (const auto& cells : kept_) widen(cells);
  write_head(out);
  for (const auto& cells : kept_) write_text(out, cells);
  kept_ = {};
}

std::vector<std::string> ColumnsText::shown(const Line& line) const {
  std::vector<std::string> cells;
  cells.reserve(line.size());
  for (const ColumnValue& cell : line)
    cells.push_back(cell.kind == ColumnValue::Kind::Nothing ? "-" : printable(cell.text, names_));
  return cells;
}

void ColumnsText::widen(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], std::min(cells[i].size(), kWidest));
    needed_[i] = std::max({needed_[i], widths_[i], cells[i].size()});
  }
}

// Cuts texts where the columns, as wide as they have become, do not fit.
void ColumnsText::fit(std::vector<std::string>& cells, std::vector<std::size_t>& widths) const {
  std::vector<bool> are_names;
  for (std::size_t i = 0; i < cells.size(); ++i) are_names.push_back(!columns_.is_number(i));
  std::vector<std::size_t> fitted = needed_;
  fit_columns(fitted, are_names, kGap, room_);
  if (fitted == needed_) return;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (are_names[i]) cells[i] = cut_in_the_middle(cells[i], fitted[i]);
    widths[i] = std::min(widths[i], fitted[i]);
  }
}

void ColumnsText::write_head(TextOutput& out) {
  is_begun_ = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns_.size(); ++i) names.push_back(printable(columns_.name(i), names_));
  write_text(out, names);
}

void ColumnsText::write_text(TextOutput& out, std::vector<std::string> cells) {
  std::vector<std::size_t> widths = widths_;
  if (room_ != 0) fit(cells, widths);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) out.blanks(kGap);
    if (columns_.is_number(i)) {
      out.padded(cells[i], widths[i]);
    } else if (i + 1 == cells.size()) {
      out.text(cells[i]);  // nothing behind it
    } else {
      out.left(cells[i], widths[i]);
    }
  }
  out.character('\n');
}

void ColumnsText::write_csv(TextOutput& out, const Line& line) {
  for (std::size_t i = 0; !is_begun_ && i < columns_.size(); ++i) {
    if (i != 0) out.character(',');
    out.text(printable_csv(columns_.name(i), names_));
    if (i + 1 == columns_.size()) out.text("\r\n");
  }
  is_begun_ = true;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != 0) out.character(',');
    out.text(printable_csv(line[i].text, names_));
  }
  out.text("\r\n");
}

void ColumnsText::write_json(TextOutput& out, const Line& line) {
  JsonFields fields(out);
  for (std::size_t i = 0; i < line.size(); ++i) {
    switch (line[i].kind) {
      case ColumnValue::Kind::Nothing:
        fields.json(columns_.name(i), "null");
        break;
      case ColumnValue::Kind::Number:
        fields.json(columns_.name(i), line[i].text);
        break;
      case ColumnValue::Kind::Text:
        fields.text(columns_.name(i), line[i].text);
        break;
    }
  }
  fields.finish();
  out.character('\n');
}

}  // namespace tacho::report
