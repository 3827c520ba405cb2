#include "report/output/text_table.h"

namespace tacho::report {

void TextTable::write_head(TextBuffer& out) const {
  out.character('#');
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TableColumn& column = columns_[i];
    out.blanks(i == 0 ? 1 : 2);
    if (column.is_header_right) {
      out.padded(column.header, column.width);
    } else {
      out.left(column.header, column.width);
    }
  }
  out.text("\n#");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    out.blanks(i == 0 ? 1 : 2);
    out.fill('.', columns_[i].width);
  }
  out.text("\n#\n");
}

void TextTable::write_row(TextBuffer& out, const std::vector<std::string>& cells) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TableColumn& column = columns_[i];
    out.blanks(2);
    const std::string_view cell =
        column.is_cut ? std::string_view(cells[i]).substr(0, column.width) : cells[i];
    if (column.is_cut || i + 1 < columns_.size()) {
      out.left(cell, column.width);
    } else {
      out.text(cell);
    }
  }
  out.character('\n');
}

}  // namespace tacho::report
