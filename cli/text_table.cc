#include "cli/text_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace tacho::cli {
namespace {

constexpr std::string_view kCut = "..";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // of UTF-8

// The first `count` characters, or the last.
std::string_view begin_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size() && (count > 0 || continues_character(text[at])); ++at)
    if (!continues_character(text[at])) --count;
  return text.substr(0, at);
}
std::string_view end_of(std::string_view text, std::size_t count) {
  std::size_t at = text.size();
  while (at > 0 && count > 0)
    if (!continues_character(text[--at])) --count;
  return text.substr(at);
}

using Kind = TableColumn::Kind;

constexpr std::size_t kGap = 2;  // between the columns of a table with a limit

// "101 102 .."
std::string cut_after_a_word(const std::string& text, std::size_t width) {
  if (shown_width(text) <= width) return text;
  const std::size_t end = text.rfind(' ', width - std::min(width, kCut.size() + 1));
  return end == std::string::npos ? std::string(begin_of(text, width)) : text.substr(0, end + 1).append(kCut);
}

void add_cell(std::string& line, const std::string& text, const TableColumn& column, std::size_t width,
              bool is_last) {
  const std::size_t blanks = width - std::min(width, shown_width(text));
  if (column.kind == Kind::Number) line.append(blanks, ' ');
  line += text;
  if (column.kind != Kind::Number && !is_last) line.append(blanks, ' ');
}

std::size_t width_of(const std::vector<std::size_t>& widths, std::size_t gap) {
  return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
}

// Leaves out columns of the kind Spare where the table is too wide, then makes the others narrower.
void fit(std::vector<TableColumn>& columns, std::vector<std::vector<std::string>>& rows,
         std::vector<std::size_t>& widths, std::size_t room) {
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (columns[i].kind != Kind::Spare || width_of(widths, kGap) <= room) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    columns.erase(columns.begin() + at);
    widths.erase(widths.begin() + at);
    for (auto& row : rows)
      if (row.size() > 1) row.erase(row.begin() + at);
  }
  std::vector<bool> are_names;
  for (const TableColumn& column : columns)
    are_names.push_back(column.kind == Kind::Name || column.kind == Kind::List);
  fit_columns(widths, are_names, kGap, room);
  for (auto& row : rows) {
    if (row.size() == 1) {
      row.front() = cut_in_the_middle(row.front(), room);
      continue;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (columns[i].kind == Kind::Name) row[i] = cut_in_the_middle(row[i], widths[i]);
      if (columns[i].kind == Kind::List) row[i] = cut_after_a_word(row[i], widths[i]);
    }
  }
}

}  // namespace

std::size_t terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\033') {
      at = std::min(text.find('m', at), text.size() - 1);
    } else if (!continues_character(text[at])) {
      ++width;
    }
  }
  return width;
}

std::string cut_in_the_middle(std::string_view text, std::size_t width) {
  if (shown_width(text) <= width) return std::string(text);
  if (width < kCut.size() + 3) return std::string(begin_of(text, width));
  const std::size_t kept = width - kCut.size();
  return std::string(begin_of(text, kept - kept / 2)).append(kCut).append(end_of(text, kept / 2));
}

void fit_columns(std::vector<std::size_t>& widths, const std::vector<bool>& are_names, std::size_t gap,
                 std::size_t room) {
  if (room == 0 || widths.empty()) return;
  std::size_t used = width_of(widths, gap);
  while (used > room) {
    std::size_t widest = widths.size(), second = kLeastNameWidth;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (are_names[i] && widths[i] > kLeastNameWidth &&
          (widest == widths.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == widths.size()) return;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (are_names[i] && widths[i] < widths[widest]) second = std::max(second, widths[i]);
    // Reduce the widest column to the width of the second widest; columns of one width take turns.
    const std::size_t equal = static_cast<std::size_t>(std::ranges::count(widths, widths[widest]));
    const std::size_t by = equal > 1 ? 1 : std::min(used - room, widths[widest] - second);
    widths[widest] -= by;
    used -= by;
  }
}

std::string text_table(std::span<const TableColumn> of, std::vector<std::vector<std::string>> rows,
                       std::size_t room) {
  std::vector<TableColumn> columns(of.begin(), of.end());
  auto& titles = *rows.emplace(rows.begin());
  for (const TableColumn& column : columns) titles.emplace_back(column.title);
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t& width = widths.emplace_back(room == 0 ? columns[i].width : 0);
    if (room == 0) continue;
    for (const auto& row : rows)
      if (row.size() == columns.size()) width = std::max(width, shown_width(row[i]));
  }
  if (room != 0) fit(columns, rows, widths, room);
  std::string out;
  for (const auto& row : rows) {
    if (row.size() == columns.size()) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0) out.append(room == 0 ? columns[i].gap : kGap, ' ');
        add_cell(out, row[i], columns[i], widths[i], i + 1 == row.size());
      }
    } else {
      out += row.front();
    }
    out += '\n';
  }
  return out;
}

}  // namespace tacho::cli
