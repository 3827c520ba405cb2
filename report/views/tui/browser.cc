#include "report/views/tui/browser.h"

#include <algorithm>
#include <iterator>

#include "report/output/terminal.h"

namespace tacho::report {
namespace {

constexpr std::size_t kIndent = 3;        // columns of a call graph's level, as in perf
constexpr std::size_t kMostOpened = 512;  // most rows that a key opens
constexpr std::size_t kScroll = 8;        // columns
constexpr std::size_t kBetween = 2;       // columns between columns, and before the first
constexpr std::size_t kLeastOfLast = 18;  // of the last column, mostly the function: "[.] " and 14 letters

// Sets the widths of columns to 0, in the order of Spare, until names have some room: the percentages of a
// group of events take all of a narrow terminal, and at 40 columns the names of thread and module leave no
// room for the function.
void leave_out(std::vector<BrowsedColumn>& columns, std::size_t room) {
  const auto least = [&columns] {
    std::size_t sum = 0;
    for (const BrowsedColumn& one : columns) {
      const std::size_t least_name = &one == &columns.back() ? kLeastOfLast : kLeastNameWidth;
      if (one.width != 0) sum += (one.is_name ? std::min(one.width, least_name) : one.width) + kBetween;
    }
    return sum - kBetween;
  };
  const auto leave = [&](auto&& is_spare) {
    for (std::size_t i = columns.size() - 1; i-- > 0 && least() > room;)
      if (is_spare(columns[i])) columns[i].width = 0;
  };
  leave([](const BrowsedColumn& one) { return one.spare == Spare::BeforeNames; });
  leave([](const BrowsedColumn& one) { return one.is_name; });
  leave([](const BrowsedColumn& one) { return one.spare == Spare::AfterNames; });
}

}  // namespace

void Browser::changed(std::size_t at) {
  open_.clear();
  cursor_ = {rows_->size() == 0 ? 0 : std::min(at, rows_->size() - 1), 0};
  top_ = {};
}

// By node: the frames from the root to its last one.
std::vector<std::string> Browser::paths_of(const std::vector<BrowsedNode>& nodes) {
  std::vector<std::string> paths(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& frame : nodes[node].frames) paths[node].append(1, '\n').append(frame);
    for (std::uint32_t child = 0; child < nodes[node].children; ++child)
      paths[nodes[node].first_child + child] = paths[node];
  }
  return paths;
}

Browser::Memory Browser::remember() const {
  Memory memory{.open = {},
                .cursor = cursor_ == Position() ? std::string() : rows_->identity(cursor_.row),
                .line = cursor_.line,
                .scrolled = scrolled_,
                .above = cursor_.row - std::min(cursor_.row, top_.row),
                .has_head = has_head_,
                .is_wide = is_wide_};
  for (const auto& [row, one] : open_) {
    Memory::OpenRow& kept = memory.open.emplace_back(Memory::OpenRow{rows_->identity(row), {}, {}});
    const auto paths = paths_of(one.nodes);
    for (std::size_t node = 0; node < paths.size(); ++node) {
      if (one.first_open[node]) kept.first_open.insert(paths[node]);
      if (one.last_open[node]) kept.last_open.insert(paths[node]);
    }
  }
  return memory;
}

void Browser::restore(const Memory& memory) {
  has_head_ = memory.has_head;
  is_wide_ = memory.is_wide;
  scrolled_ = memory.scrolled;
  std::map<std::string_view, const Memory::OpenRow*> wanted;
  for (const Memory::OpenRow& one : memory.open) wanted.emplace(one.row, &one);
  bool is_cursor_known = memory.cursor.empty();
  for (std::size_t row = 0; row < rows_->size() && !(wanted.empty() && is_cursor_known); ++row) {
    const std::string identity = rows_->identity(row);
    if (!is_cursor_known && identity == memory.cursor) {
      cursor_ = {row, memory.line};
      top_ = {row - std::min(row, memory.above), 0};
      is_cursor_known = true;
    }
    const auto found = wanted.find(identity);
    if (found == wanted.end()) continue;
    if (rows_->has_graph(row)) {
      Open& one = open_row(row);
      const auto paths = paths_of(one.nodes);
      for (std::size_t node = 0; node < paths.size(); ++node) {
        one.first_open[node] = found->second->first_open.contains(paths[node]);
        one.last_open[node] = found->second->last_open.contains(paths[node]);
      }
      make_lines(one);
    }
    wanted.erase(found);
  }
  if (memory.cursor.empty()) cursor_.line = memory.line;
  cursor_.line = std::min(cursor_.line, lines_of(cursor_.row));
}

void Browser::graphs_changed() {
  for (auto each = open_.begin(); each != open_.end();) {
    auto nodes = rows_->graph(each->first);
    const bool is_same = nodes.size() == each->second.nodes.size();
    if (is_same) each->second.nodes = std::move(nodes);
    each = is_same ? std::next(each) : open_.erase(each);
  }
  cursor_.line = std::min(cursor_.line, lines_of(cursor_.row));
}

void Browser::move_to(Position position) {
  if (position.row >= rows_->size()) return;
  cursor_ = {position.row, std::min(position.line, lines_of(position.row))};
}

FunctionId Browser::function_at_cursor() const {
  const Open& one = open_.at(cursor_.row);
  const Line& line = one.lines[cursor_.line - 1];
  return one.nodes[line.node].functions[line.frame];
}

std::size_t Browser::lines_of(std::size_t row) const {
  const auto found = open_.find(row);
  return found == open_.end() ? 0 : found->second.lines.size();
}

bool Browser::step_down(Position& position) const {
  if (position.line < lines_of(position.row)) {
    ++position.line;
    return true;
  }
  if (position.row + 1 >= rows_->size()) return false;
  position = {position.row + 1, 0};
  return true;
}

bool Browser::step_up(Position& position) const {
  if (position.line > 0) {
    --position.line;
    return true;
  }
  if (position.row == 0) return false;
  position = {position.row - 1, lines_of(position.row - 1)};
  return true;
}

void Browser::move(std::ptrdiff_t lines) {
  for (; lines > 0 && step_down(cursor_); --lines) {
  }
  for (; lines < 0 && step_up(cursor_); ++lines) {
  }
}

Browser::Open& Browser::open_row(std::size_t row) {
  const auto [found, is_new] = open_.try_emplace(row);
  Open& one = found->second;
  if (!is_new) return one;
  one.nodes = rows_->graph(row);
  one.first_open.resize(one.nodes.size());
  one.last_open.resize(one.nodes.size());
  make_lines(one);
  return one;
}

void Browser::open_all(std::size_t row) {
  if (!rows_->has_graph(row)) return;
  Open& one = open_row(row);
  one.first_open.assign(one.nodes.size(), true);
  one.last_open.assign(one.nodes.size(), true);
  make_lines(one);
}

// As in perf's browser: each frame of a node has a line, and children follow its last frame. A top node
// without siblings cannot be folded to its first frame.
void Browser::make_lines(Open& one) {
  struct Level {
    std::uint32_t node = 0, child = 0;
    std::size_t indent = 0;
  };
  one.lines.clear();
  if (one.nodes.empty()) return;
  std::vector<Level> levels{{0, 0, kIndent}};
  while (!levels.empty()) {
    Level& level = levels.back();
    const BrowsedNode& parent = one.nodes[level.node];
    if (level.child == parent.children) {
      levels.pop_back();
      continue;
    }
    const bool is_top = level.node == 0;
    const std::uint32_t number = parent.first_child + level.child++;
    const BrowsedNode& node = one.nodes[number];
    const bool has_children = node.children > 0;
    bool goes_on = true;  // to the children
    const std::size_t more = node.share.empty() ? 0 : kIndent;
    const std::size_t indent = level.indent;
    for (std::uint32_t frame = 0; frame < node.frames.size(); ++frame) {
      const bool is_first = frame == 0, is_last = frame + 1 == node.frames.size();
      const bool folds_frames = is_first && !is_last && (!is_top || parent.children > 1);
      const bool folds_children = is_last && has_children;
      char sign = ' ';
      if (folds_frames) sign = one.first_open[number] ? '-' : '+';
      if (folds_children) sign = one.last_open[number] ? '-' : '+';
      one.lines.push_back({number, frame, indent + (is_first ? 0 : more), sign});
      if (folds_frames && sign == '+') goes_on = false;
      if (!goes_on) break;
    }
    if (goes_on && has_children && one.last_open[number])
      levels.push_back({number, 0, indent + kIndent + (node.frames.size() > 1 ? more : 0)});
  }
}

char Browser::sign_of(Position position) const {
  if (position.line > 0) return open_.at(position.row).lines[position.line - 1].sign;
  if (open_.contains(position.row)) return '-';
  return rows_->has_graph(position.row) ? '+' : ' ';
}

void Browser::toggle() {
  if (is_empty() || sign_of(cursor_) == ' ') return;
  if (cursor_.line == 0) {
    if (open_.erase(cursor_.row) == 0) open_row(cursor_.row);
    return;
  }
  Open& one = open_.at(cursor_.row);
  const Line line = one.lines[cursor_.line - 1];
  const bool is_last = line.frame + 1 == one.nodes[line.node].frames.size();
  auto flag = is_last ? one.last_open.begin() + line.node : one.first_open.begin() + line.node;
  *flag = !*flag;
  make_lines(one);
}

// Closes the node at the cursor, or moves to its parent.
void Browser::close_or_go_to_parent() {
  if (is_empty()) return;
  if (sign_of(cursor_) == '-') return toggle();
  if (cursor_.line == 0) return;
  const auto& lines = open_.at(cursor_.row).lines;
  const std::size_t indent = lines[cursor_.line - 1].indent;
  std::size_t line = cursor_.line - 1;
  while (line > 0 && lines[line - 1].indent >= indent) --line;
  cursor_.line = line;
}

bool Browser::on_key(const KeyPress& press) {
  if (const auto lines = lines_moved(press, std::max<std::size_t>(height_, 2) - 1)) {
    move(*lines);
    return true;
  }
  switch (press.key) {
    case Key::Home:
      cursor_ = {};
      return true;
    case Key::End:
      if (!is_empty()) cursor_ = {rows_->size() - 1, lines_of(rows_->size() - 1)};
      return true;
    case Key::Enter:
      toggle();
      return true;
    case Key::Right:
      if (is_wide_)
        scrolled_ += kScroll;
      else if (!is_empty() && sign_of(cursor_) == '+')
        toggle();
      return true;
    case Key::Left:
      if (is_wide_)
        scrolled_ -= std::min(scrolled_, kScroll);
      else
        close_or_go_to_parent();
      return true;
    case Key::Click:
    case Key::DoubleClick: {
      if (press.row < first_ || press.row >= first_ + height_) return false;
      Position position = top_;
      for (std::size_t row = first_; row < press.row; ++row)
        if (!step_down(position)) return true;
      if (is_empty()) return true;
      const bool is_sign =
          press.column <=
          (position.line == 0 ? 1 : 2 + open_.at(position.row).lines[position.line - 1].indent);
      const bool was_here = cursor_ == position;
      cursor_ = position;
      if (is_sign || was_here || press.key == Key::DoubleClick) toggle();
      return true;
    }
    default:
      break;
  }
  if (press.is('+')) {
    toggle();
  } else if (press.is('-')) {
    if (!is_empty() && sign_of(cursor_) == '-') toggle();
  } else if (press.is('e')) {
    if (is_empty()) return true;
    if (cursor_.line == 0 && open_.erase(cursor_.row) > 0) return true;
    open_all(cursor_.row);
  } else if (press.is('c')) {
    open_.erase(cursor_.row);
    cursor_.line = 0;
  } else if (press.is('E')) {
    for (std::size_t row = 0, opened = 0; row < rows_->size() && opened < kMostOpened; ++row) {
      if (!rows_->has_graph(row)) continue;
      open_all(row);
      ++opened;
    }
  } else if (press.is('C')) {
    open_.clear();
    cursor_.line = 0;
  } else if (press.is('H')) {
    has_head_ = !has_head_;
  } else if (press.is('w') || press.is('n')) {
    is_wide_ = !is_wide_;
    scrolled_ = 0;
  } else {
    return false;
  }
  return true;
}

void Browser::scroll_to_cursor(std::size_t height) {
  if (cursor_.row >= rows_->size()) cursor_ = {rows_->size() == 0 ? 0 : rows_->size() - 1, 0};
  cursor_.line = std::min(cursor_.line, lines_of(cursor_.row));
  top_.line = std::min(top_.line, lines_of(top_.row));
  if (cursor_ < top_) top_ = cursor_;
  // Scrolls so that the cursor is on the screen.
  Position highest = cursor_;
  for (std::size_t i = 1; i < height && step_up(highest); ++i) {
  }
  top_ = std::max(top_, highest);
  // No empty lines below the last row while there are rows above the screen.
  Position last = top_;
  std::size_t shown = 1;
  while (shown < height && step_down(last)) ++shown;
  while (shown < height && step_up(top_)) ++shown;
}

std::vector<BrowsedColumn> Browser::fitted(std::size_t width) const {
  std::vector<BrowsedColumn> columns = rows_->columns();
  if (is_wide_ || columns.empty()) return columns;
  const std::size_t room = width > kBetween ? width - kBetween : 1;
  leave_out(columns, room);
  // The last column, mostly the function, gets at least two fifths of the width; other names are shortened.
  const std::size_t last =
      columns.back().is_name ? std::min(columns.back().width, 2 * room / 5) : columns.back().width;
  std::vector<std::size_t> widths;
  std::vector<bool> are_names;
  std::size_t used = 0;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
    if (columns[i].width == 0) continue;
    widths.push_back(columns[i].width);
    are_names.push_back(columns[i].is_name);
  }
  fit_columns(widths, are_names, kBetween, room > last + kBetween ? room - last - kBetween : 1);
  for (std::size_t i = 0, at = 0; i + 1 < columns.size(); ++i)
    if (columns[i].width != 0) used += (columns[i].width = widths[at++]) + kBetween;
  if (columns.back().is_name)
    columns.back().width =
        std::max(std::min(columns.back().width, room - std::min(room, used)), kLeastNameWidth);
  return columns;
}

void Browser::put_text(Frame& frame, std::size_t at, std::size_t column, Style style,
                       std::string_view text) const {
  if (column >= scrolled_) return frame.put_text(at, column - scrolled_, style, text);
  frame.put_text(at, 0, style, from_column(text, scrolled_ - column));
}

void Browser::draw_head(Frame& frame, std::size_t at, const std::vector<BrowsedColumn>& columns) const {
  std::size_t x = 2;
  frame.rows[at].fill = Style::Heading;
  for (const BrowsedColumn& column : columns) {
    if (column.width == 0) continue;
    const std::string text = fit_middle(column.header, column.width);
    const std::size_t blanks = column.width - std::min(column.width, columns_of(text));
    put_text(frame, at, x + (column.is_right ? blanks : 0), Style::Heading, text);
    x += column.width + 2;
  }
}

void Browser::draw_row(Frame& frame, std::size_t at, std::size_t row,
                       const std::vector<BrowsedColumn>& columns) const {
  constexpr double kHigh = 5, kMedium = 0.5;
  put_text(frame, at, 0, Style::Normal, std::string(1, sign_of({row, 0})));
  const auto cells = rows_->cells(row);
  std::size_t x = 2;
  for (std::size_t i = 0; i < columns.size() && i < cells.size(); ++i) {
    if (columns[i].width == 0) continue;
    const auto& cell = cells[i];
    const Style style = !columns[i].is_share   ? cell.style
                        : cell.share >= kHigh  ? Style::High
                        : cell.share > kMedium ? Style::Medium
                                               : Style::Normal;
    put_text(frame, at, x, style, is_wide_ ? cell.text : fit_middle(cell.text, columns[i].width));
    x += std::max(columns[i].width, is_wide_ ? columns_of(cell.text) : 0) + 2;
  }
}

void Browser::draw_line(Frame& frame, std::size_t at, Position position) const {
  const Open& one = open_.at(position.row);
  const Line& line = one.lines[position.line - 1];
  const BrowsedNode& node = one.nodes[line.node];
  std::string text(line.indent, ' ');
  text += line.sign;
  text += ' ';
  std::size_t x = text.size();
  put_text(frame, at, 0, Style::Normal, text);
  if (line.frame == 0 && !node.share.empty()) {
    put_text(frame, at, x, Style::Normal, node.share);
    x += node.share.size() + 1;
  }
  const std::size_t room = frame.size.width - std::min<std::size_t>(frame.size.width, x);
  const std::string& name = node.frames[line.frame];
  put_text(frame, at, x, Style::Normal, is_wide_ ? name : fit_middle(name, std::max<std::size_t>(room, 1)));
}

void Browser::draw(Frame& frame, std::size_t first, std::size_t height) {
  const auto columns = fitted(frame.size.width);
  if (has_head_ && height > 1) {
    draw_head(frame, first, columns);
    ++first;
    --height;
  }
  first_ = first;
  height_ = std::max<std::size_t>(height, 1);
  if (is_empty()) return frame.put_text(first, 2, Style::Notice, "no rows");
  scroll_to_cursor(height_);
  Position position = top_;
  for (std::size_t i = 0; i < height; ++i) {
    if (position.line == 0)
      draw_row(frame, first + i, position.row, columns);
    else
      draw_line(frame, first + i, position);
    frame.rows[first + i].is_selected = position == cursor_;
    if (!step_down(position)) break;
  }
}

std::string Browser::text() const {
  constexpr std::uint16_t kMostColumns = 16'384;
  Browser whole = *this;
  whole.is_wide_ = true;
  whole.scrolled_ = 0;
  const auto columns = whole.rows_->columns();
  std::string text;
  const auto add = [&text](const Frame& frame) { text.append(text_of(frame.rows[0])).append(1, '\n'); };
  if (has_head_) {
    Frame head({kMostColumns, 1});
    whole.draw_head(head, 0, columns);
    add(head);
  }
  if (is_empty()) return text;
  Position position;
  do {
    Frame line({kMostColumns, 1});
    if (position.line == 0)
      whole.draw_row(line, 0, position.row, columns);
    else
      whole.draw_line(line, 0, position);
    add(line);
  } while (whole.step_down(position));
  return text;
}

}  // namespace tacho::report
