#include "report/views/tui/pages.h"

#include <algorithm>

namespace tacho::report {
namespace {

constexpr std::size_t kScroll = 10;        // columns, as perf's header window
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

std::vector<std::string> written_lines(const std::function<void(TextOutput&)>& write) {
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
  const auto up = [this](std::size_t by) { top_ -= std::min(top_, by); };
  switch (press.key) {
    case Key::Up:
      up(1);
      break;
    case Key::WheelUp:
      up(3);
      break;
    case Key::PageUp:
      up(height_);
      break;
    case Key::Down:
      top_ = std::min(last, top_ + 1);
      break;
    case Key::WheelDown:
      top_ = std::min(last, top_ + 3);
      break;
    case Key::PageDown:
      top_ = std::min(last, top_ + height_);
      break;
    case Key::Home:
      top_ = 0;
      break;
    case Key::End:
      top_ = last;
      break;
    case Key::Right:
      left_ += kScroll;
      break;
    case Key::Left:
      left_ -= std::min(left_, kScroll);
      break;
    case Key::Escape:
    case Key::Enter:
      return false;
    default:
      if (press.is(' ')) top_ = std::min(last, top_ + height_);
      return !press.is('q') && !press.is('h') && !press.is('?') && !press.is('i');
  }
  return true;
}

void TextPage::draw(Frame& frame) {
  frame.bar(0, Style::Bar, title_);
  height_ = frame.size.height > 2 ? frame.size.height - std::size_t{2} : 1;
  top_ = std::min(top_, lines_.size() > height_ ? lines_.size() - height_ : 0);
  for (std::size_t i = 0; i < height_ && top_ + i < lines_.size(); ++i)
    frame.put(1 + i, 0, Style::Normal, from_column(lines_[top_ + i], left_));
  frame.bar(frame.size.height - std::size_t{1}, Style::Bar, keys_);
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
      return Answer::Left;
    case Key::Click:
    case Key::DoubleClick:
      if (press.row < first_row_ || press.row >= first_row_ + rows_ || press.column < column_ ||
          press.column >= column_ + width_)
        return Answer::Left;
      at_ = top_ + press.row - first_row_;
      return Answer::Chosen;
    default:
      return press.is('q') ? Answer::Left : Answer::None;
  }
}

void Menu::draw(Frame& frame) {
  width_ = columns_of(title_);
  for (const std::string& item : items_) width_ = std::max(width_, columns_of(item));
  width_ = std::min<std::size_t>(width_ + 4, frame.size.width);
  rows_ = std::min<std::size_t>(items_.size(), std::max<std::size_t>(frame.size.height, 5) - 4);
  if (at_ < top_) top_ = at_;
  if (at_ >= top_ + rows_) top_ = at_ + 1 - rows_;
  top_ = std::min(top_, items_.size() - rows_);
  column_ = (frame.size.width - width_) / 2;
  const std::size_t before = (frame.size.height - std::min<std::size_t>(rows_ + 2, frame.size.height)) / 2;
  first_row_ = before + 1;
  const auto line = [&](std::size_t row, Style style, const std::string& text) {
    frame.put(row, column_, style,
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
      return Answer::Left;
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
  // Of a long answer its end.
  const std::size_t hidden = used + length + 1 > room ? used + length + 1 - room : 0;
  frame.put(row, 0, Style::Bar, label_ + " ");
  frame.put(row, used, Style::Bar, from_column(text_, hidden));
  const std::size_t column = std::min(used + length - std::min(length, hidden), room - 1);
  frame.cursor = {static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(column)};
}

}  // namespace tacho::report
