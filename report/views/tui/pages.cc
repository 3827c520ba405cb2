#include "report/views/tui/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace tacho::report {
namespace {

constexpr std::size_t kPageScroll = 10;    // columns, as perf's header window
constexpr std::size_t kLongestText = 256;  // bytes of an answer

bool is_character(Key key) {
  const auto code = static_cast<std::uint32_t>(key);
  return code >= ' ' && code != static_cast<std::uint32_t>(Key::Backspace) &&
         code < static_cast<std::uint32_t>(Key::Up);
}

void add_utf8(std::string& to, std::uint32_t code) {
  const auto add = [&to](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

}  // namespace

std::string written_text(const std::function<void(TextOutput&)>& write) {
  std::string text;
  TextOutput out(
      OutputFile(sandbox::Output{.write = [&text](std::string_view more) -> Result<OutputFile::Reader> {
                                   text += more;
                                   return OutputFile::Reader::There;
                                 },
                                 .finish = []() -> Result<> { return Done{}; },
                                 .is_reader_gone = [] { return false; }}));
  write(out);
  (void)out.finish();
  return text;
}

std::vector<std::string> written_lines(const std::function<void(TextOutput&)>& write) {
  const std::string text = written_text(write);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool TextPage::on_key(const KeyPress& press) {
  const std::size_t last = lines_.size() > height_ ? lines_.size() - height_ : 0;
  if (const auto lines = lines_moved(press, height_)) {
    top_ = moved(top_, *lines, last + 1);
    return true;
  }
  switch (press.key) {
    case Key::Home:
      top_ = 0;
      break;
    case Key::End:
      top_ = last;
      break;
    case Key::Right:
      left_ += kPageScroll;
      break;
    case Key::Left:
      left_ -= std::min(left_, kPageScroll);
      break;
    case Key::Escape:
    case Key::Enter:
      return false;
    default:
      return !press.is('q') && std::ranges::none_of(closers_, [&](char key) { return press.is(key); });
  }
  return true;
}

void TextPage::draw(Frame& frame) {
  frame.bar(0, Style::Bar, title_);
  height_ = frame.size.height > 2 ? frame.size.height - std::size_t{2} : 1;
  top_ = std::min(top_, lines_.size() > height_ ? lines_.size() - height_ : 0);
  for (std::size_t i = 0; i < height_ && top_ + i < lines_.size(); ++i)
    frame.put_text(1 + i, 0, Style::Normal, from_column(lines_[top_ + i], left_));
  frame.last_line(hints_);
}

Menu::Answer Menu::on_key(const KeyPress& press) {
  switch (press.key) {
    case Key::Up:
    case Key::WheelUp:
      at_ = at_ == 0 ? items_.size() - 1 : at_ - 1;
      return Answer::None;
    case Key::Down:
    case Key::WheelDown:
      at_ = at_ + 1 == items_.size() ? 0 : at_ + 1;
      return Answer::None;
    case Key::Home:
    case Key::PageUp:
      at_ = 0;
      return Answer::None;
    case Key::End:
    case Key::PageDown:
      at_ = items_.size() - 1;
      return Answer::None;
    case Key::Enter:
    case Key::Right:
      return Answer::Chosen;
    case Key::Escape:
    case Key::Left:
      return Answer::Closed;
    case Key::Click:
    case Key::DoubleClick:
      if (press.row < first_row_ || press.row >= first_row_ + rows_ || press.column < column_ ||
          press.column >= column_ + width_)
        return Answer::Closed;
      at_ = top_ + press.row - first_row_;
      return Answer::Chosen;
    default:
      return press.is('q') ? Answer::Closed : Answer::None;
  }
}

void Menu::draw(Frame& frame) {
  width_ = columns_of(title_);
  for (const std::string& item : items_) width_ = std::max(width_, columns_of(item));
  width_ = std::min<std::size_t>(width_ + 4, frame.size.width);
  rows_ = std::min<std::size_t>(items_.size(), std::max<std::size_t>(frame.size.height, 5) - 4);
  top_ = top_showing(at_, top_, rows_, items_.size());
  column_ = (frame.size.width - width_) / 2;
  const std::size_t before = (frame.size.height - std::min<std::size_t>(rows_ + 2, frame.size.height)) / 2;
  first_row_ = before + 1;
  const auto line = [&](std::size_t row, Style style, const std::string& text) {
    frame.put_text(row, column_, style,
                   padded_to("  " + fit_middle(text, width_ - std::min<std::size_t>(width_, 3)), width_));
  };
  line(before, Style::Bar, title_);
  for (std::size_t i = 0; i < rows_; ++i)
    line(first_row_ + i, top_ + i == at_ ? Style::Bar : Style::Box, items_[top_ + i]);
  line(first_row_ + rows_, Style::Box, "");
}

Question::Answer Question::on_key(const KeyPress& press) {
  switch (press.key) {
    case Key::Enter:
      return Answer::Given;
    case Key::Escape:
      return Answer::Closed;
    case Key::Backspace:
    case Key::Delete:
      if (text_.empty()) return Answer::None;
      while (text_.size() > 1 && (static_cast<unsigned char>(text_.back()) & 0xc0) == 0x80) text_.pop_back();
      text_.pop_back();
      return Answer::Changed;
    default:
      break;
  }
  constexpr auto kClear = static_cast<Key>(21);  // Ctrl-U
  if (press.key == kClear && !text_.empty()) {
    text_.clear();
    return Answer::Changed;
  }
  if (!is_character(press.key) || text_.size() >= kLongestText) return Answer::None;
  add_utf8(text_, static_cast<std::uint32_t>(press.key));
  return Answer::Changed;
}

void Question::draw(Frame& frame) const {
  const std::size_t row = frame.size.height - std::size_t{1};
  frame.rows[row].runs.clear();
  frame.rows[row].fill = Style::Bar;
  const std::size_t room = frame.size.width;
  const std::size_t used = columns_of(label_) + 1;
  const std::size_t length = columns_of(text_);
  // Of a long text the end is shown.
  const std::size_t hidden = used + length + 1 > room ? used + length + 1 - room : 0;
  frame.put_text(row, 0, Style::Bar, label_ + " ");
  frame.put_text(row, used, Style::Bar, from_column(text_, hidden));
  const std::size_t column = std::min(used + length - std::min(length, hidden), room - 1);
  frame.cursor = {static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(column)};
}

namespace {

struct KeyRow {
  std::string_view keys, what;
};

// Keys of the list, in the order of perf's help.
constexpr KeyRow kListKeys[] = {
    {"h ? F1", "this page"},
    {"Up Down PgUp PgDn", "move; also Space (page down), Home, End"},
    {"q Ctrl-C", "quit; in other views than the list q: back"},
    {"Esc", "undo the last zoom; without one, ask whether to quit"},
    {"Tab Shift-Tab", "next, previous event"},
    {"Enter", "open or close one level of the call graph at the cursor"},
    {"Right Left", "open a level; close it or go to its parent"},
    {"+ -", "open or close one level; close"},
    {"e c", "open or close the row's whole call graph; close it"},
    {"E C", "the same for all rows"},
    {"m", "menu of actions for the row"},
    {"a", "annotate the function at the cursor"},
    {"x", "callers and callees of the function at the cursor"},
    {"g f", "flame graph in characters: arrows, Enter zooms, Esc: back"},
    {"d t p k", "zoom into its module, thread, process, the kernel; again: out"},
    {"S", "zoom into its socket, where rows name it (o: socket)"},
    {"/", "show functions whose names contain a text"},
    {"T", "samples over time: Space marks, Enter counts that time"},
    {"v", "list the row's samples; Enter: fields, call chain"},
    {"l", "list the samples of all rows"},
    {"M", "heat map of a field of all rows: time by value"},
    {"b", "histogram of a field of all rows"},
    {"B", "compare with an earlier capture; again: end"},
    {"o", "sort by other keys"},
    {"< >", "sort by the column to the left, to the right"},
    {"W", "count periods or samples"},
    {"F", "percent of all samples, or of the shown samples"},
    {"L", "hide rows below a percentage"},
    {"H", "column headers on and off"},
    {"n w", "full names; Left and Right scroll"},
    {"V", "modules in call graphs on and off"},
    {"0-9", "sort by the n-th event of a group"},
    {"i", "the capture's header"},
    {"P", "write these rows to perf.hist.0, perf.hist.1, ..."},
    {"r", "menu of other views of these samples"},
    {"s", "open another capture in the working directory"},
    {"D", "status line with numbers of rows and functions"},
    {"Ctrl-L Ctrl-Z", "redraw; suspend (continue with fg)"},
    {"mouse", "click: move; on + or - or twice: open; wheel: scroll"},
};
constexpr KeyRow kCallersKeys[] = {
    {"Enter Right Left", "open and close callers and callees, as in the list"},
    {"x", "callers and callees of the function at the cursor"},
    {"a", "annotate it"},
    {"P", "write these rows to perf.hist.0, perf.hist.1, ..."},
    {"q Esc", "back"},
};
constexpr KeyRow kFlameKeys[] = {
    {"arrows", "caller, callee, neighbours"},
    {"Enter", "zoom to the selected frame"},
    {"Backspace", "zoom out"},
    {"a", "annotate the selected function"},
    {"f q Esc", "back"},
};
constexpr KeyRow kTimesKeys[] = {
    {"Left Right", "move; PgUp PgDn: by ten columns; Home, End"}, {"Space", "mark one end of a time range"},
    {"Enter", "count the samples from the mark to the cursor"},   {"Backspace", "count all samples"},
    {"q Esc T", "close; other keys are those of the list"},
};
constexpr KeyRow kComparedKeys[] = {
    {"< >", "sort by the column to the left, to the right"},
    {"I", "percent of functions self, or with callees"},
    {"B Esc", "back to the rows of one capture"},
};
constexpr KeyRow kHeatKeys[] = {
    {"arrows", "move to another box; PgUp PgDn: by ten columns; Home, End"},
    {"Space", "mark a corner: selects the box from there to the cursor"},
    {"Enter", "count only this box in the list; Esc there: all"},
    {"v", "list its samples"},
    {"x", "functions and values more frequent in it than outside"},
    {"q Esc", "back"},
};
constexpr KeyRow kSamplesKeys[] = {
    {"Enter", "the sample's fields and its call chain"},
    {"/ n", "search in the lines, again"},
    {"Left Right", "scroll by ten columns"},
    {"q Esc", "back"},
};
constexpr KeyRow kHistKeys[] = {
    {"l", "row width, as 1000 or 100us; empty: powers of two"},
    {"k", "one histogram for each comm, cpu or value of a field"},
    {"q Esc", "back"},
};
// Keys of tacho top. The first three replace keys of the list.
constexpr KeyRow kLiveKeys[] = {
    {"f", "freeze the rows; again: go on"},
    {"z", "count anew at each refresh, or the whole window"},
    {"w", "write the counted samples to a capture"},
    {"g n", "flame graph; full names"},
};
constexpr KeyRow kCodeKeys[] = {
    {"Tab Shift-Tab", "next and previous hot line"},
    {"H", "go to the hottest line"},
    {"Enter Right", "follow the jump or call; at a return: go to the caller"},
    {"< >", "the function with more, with fewer samples"},
    {"/ ? n", "search down, up, again"},
    {"s", "source lines on and off"},
    {"o f", "addresses on and off; file addresses or offsets"},
    {"O", "show addresses of jump targets, also of calls, of all"},
    {"j J", "jump arrows; number of jumps to a line"},
    {"k l", "source line numbers; file and line at the cursor"},
    {"t", "percent, period, samples"},
    {"p b", "percent of the function or of all; periods or samples"},
    {"c", "min and max cycles besides the mean, from branch stacks"},
    {"w", "full paths of source files"},
    {"P", "write this code to FUNCTION.annotation"},
    {"r", "menu of other views of these samples"},
    {"q Esc Left", "back"},
};

}  // namespace

std::vector<std::string> help_lines(KeysOf here, bool is_live) {
  struct Section {
    std::string_view title;
    std::span<const KeyRow> keys;
    bool is_here = false;
  };
  std::vector<Section> sections;
  if (is_live) sections.push_back({"While it is recorded", kLiveKeys});
  sections.push_back({"The list of rows and call graphs", kListKeys});
  sections.push_back({"Callers and callees", kCallersKeys, here == KeysOf::Callers});
  sections.push_back({"Flame graph", kFlameKeys, here == KeysOf::Flame});
  sections.push_back({"Annotated code", kCodeKeys, here == KeysOf::Code});
  if (!is_live) {
    sections.push_back({"Samples over time", kTimesKeys, here == KeysOf::Times});
    sections.push_back({"Two captures compared", kComparedKeys, here == KeysOf::Compared});
    sections.push_back({"Samples one by one", kSamplesKeys, here == KeysOf::Samples});
    sections.push_back({"Heat map", kHeatKeys, here == KeysOf::HeatMap});
    sections.push_back({"Histogram", kHistKeys, here == KeysOf::Histogram});
  }
  std::stable_partition(sections.begin(), sections.end(), [](const Section& one) { return one.is_here; });
  std::vector<std::string> lines;
  for (const Section& section : sections) {
    if (!lines.empty()) lines.emplace_back();
    lines.insert(lines.end(), {std::string(section.title), ""});
    for (const KeyRow& row : section.keys) lines.push_back(fmt::format("  {:<19}{}", row.keys, row.what));
  }
  return lines;
}

}  // namespace tacho::report
