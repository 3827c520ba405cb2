#include "report/views/tui/live_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "report/profile/distribution.h"

namespace tacho::report {
namespace {

std::vector<std::string> table_help() {
  return {"The table of a recorder",
          "",
          "  Up Down PgUp PgDn  move; also Space (page down), Home, End",
          "  Enter, a click     open this row: functions and call graphs, or its events",
          "  v                  in an opened row: list its events; Esc: back",
          "  Tab                the functions of all events; Esc: back",
          "  < >                sort by the column to the left, to the right",
          "  /                  show rows whose keys contain a text",
          "  f                  freeze the rows, or refresh them again",
          "  z                  count anew at each refresh, or the whole window",
          "  w                  write the counted samples to a capture",
          "  H n                names of columns on and off; whole names",
          "  q Ctrl-C           quit"};
}

}  // namespace

void LiveTable::update(const TableCounts& counts, const TableCounts::Rows& rows, Form form) {
  const Browser::Memory memory = browser_.remember();
  form_ = form;
  head_ = counts.head(Names::Safe);
  if (form_ == Form::Buckets) {
    const std::size_t keys = rows.empty() ? 0 : rows.begin()->first.size() - 1;
    head_.keys.resize(std::min(head_.keys.size(), keys));
    head_.keys.emplace_back("value");
    head_.numbers = {"count"};
  }
  rows_.clear();
  key_widths_.clear();
  number_widths_.clear();
  for (const std::string& name : head_.keys) key_widths_.push_back(columns_of(name));
  for (const std::string& name : head_.numbers) number_widths_.push_back(columns_of(name));
  if (form_ == Form::Buckets)
    add_buckets(rows, head_.keys.size() - 1);
  else
    add_table(counts, rows);
  show();
  browser_.restore(memory);
}

void LiveTable::add_row(Row row) {
  for (std::size_t i = 0; i < row.texts.size() && i < key_widths_.size(); ++i)
    key_widths_[i] = std::max(key_widths_[i], columns_of(row.texts[i]));
  for (std::size_t i = 0; i < row.numbers.size() && i < number_widths_.size(); ++i)
    number_widths_[i] = std::max(number_widths_[i], show_number(row.numbers[i]).size());
  rows_.push_back(std::move(row));
}

void LiveTable::add_table(const TableCounts& counts, const TableCounts::Rows& rows) {
  for (const auto* const row : counts.in_order(rows)) {
    TableLine line = counts.line_of(*row, Names::Safe, TableForm::Text);
    Row one{.keys = row->first, .texts = {}, .numbers = std::move(line.numbers), .bar = {}};
    for (TableKey& key : line.keys) one.texts.push_back(std::move(key.text));
    add_row(std::move(one));
  }
}

// Histograms one after the other, in the order of their keys.
void LiveTable::add_buckets(const TableCounts::Rows& rows, std::size_t keys) {
  const Distribution powers;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto is_other = [&](const auto& row) {
      return !std::equal(row.first.begin(), row.first.begin() + static_cast<std::ptrdiff_t>(keys),
                         begin->first.begin());
    };
    const auto end = std::find_if(begin, rows.end(), is_other);
    std::uint64_t largest = 1;
    for (auto row = begin; row != end; ++row) largest = std::max(largest, row->second.row.samples);
    std::optional<std::int64_t> next;
    for (auto row = begin; row != end; ++row) {
      const auto* const index = std::get_if<std::int64_t>(&row->first.back());
      if (index == nullptr) continue;
      for (std::int64_t at = next.value_or(*index); at <= *index; ++at) {
        const std::uint64_t count = at == *index ? row->second.row.samples : 0;
        Row one{.keys = row->first, .texts = {}, .numbers = {ExpressionValue::of(count)}, .bar = {}};
        one.keys.back() = at;
        for (std::size_t i = 0; i < keys; ++i)
          one.texts.push_back(row->second.event->keys[i].show(row->first[i], Names::Safe));
        const Bucket bucket = powers.bucket_at(at);
        one.texts.push_back(fmt::format("{:>12} -> {}", decimal_text(bucket.low), decimal_text(bucket.high)));
        constexpr double kBar = 40;
        const double stars = kBar * static_cast<double>(count) / static_cast<double>(largest);
        one.bar = std::string(static_cast<std::size_t>(stars), '*');
        add_row(std::move(one));
      }
      next = *index + 1;
    }
    begin = end;
  }
}

// Shows the rows that pass the filter, in the chosen order.
void LiveTable::show() {
  shown_.clear();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const bool is_shown =
        filter_.empty() || std::ranges::any_of(rows_[row].texts, [this](const std::string& text) {
          return text.find(filter_) != std::string::npos;
        });
    if (is_shown) shown_.push_back(row);
  }
  browser_.changed();
  if (!order_) return;
  const std::size_t keys = head_.keys.size();
  std::ranges::stable_sort(shown_, [&](std::size_t a, std::size_t b) {
    if (*order_ < keys) {
      const std::string& left = rows_[a].texts.at(*order_);
      const std::string& right = rows_[b].texts.at(*order_);
      // By value if both texts are numbers, else as text.
      const auto is_number = [](const std::string& text) {
        return text.find_first_not_of("0123456789") == text.npos;
      };
      if (!is_number(left) || !is_number(right)) return left < right;
      return compare(rows_[a].keys.at(*order_), rows_[b].keys.at(*order_)) < 0;
    }
    const ExpressionValue& left = rows_[a].numbers.at(*order_ - keys);
    const ExpressionValue& right = rows_[b].numbers.at(*order_ - keys);
    if (right.is_nothing()) return !left.is_nothing();
    return apply(cli::Operation::Greater, left, right).is_true();
  });
}

// Keys get up to half of the width. Number columns that do not fit are left out.
void LiveTable::fit(std::size_t width) {
  constexpr std::size_t kBetween = 2;
  std::size_t keys = 0, numbers = 0;
  for (const std::size_t one : key_widths_) keys += one + kBetween;
  keys = std::min(keys, width / 2);
  numbers_ = 0;
  while (numbers_ < number_widths_.size() && keys + numbers + number_widths_[numbers_] + kBetween <= width)
    numbers += number_widths_[numbers_++] + kBetween;
}

std::vector<BrowsedColumn> LiveTable::columns() const {
  std::vector<BrowsedColumn> columns;
  for (std::size_t i = 0; i < head_.keys.size(); ++i)
    columns.push_back({.header = head_.keys[i], .width = key_widths_[i], .is_name = true});
  for (std::size_t i = 0; i < numbers_; ++i)
    columns.push_back({.header = head_.numbers[i], .width = number_widths_[i], .is_right = true});
  constexpr std::size_t kBarWidth = 40;
  if (form_ == Form::Buckets)
    columns.push_back({.header = "distribution", .width = kBarWidth, .is_name = true});
  return columns;
}

std::vector<BrowsedRows::Cell> LiveTable::cells(std::size_t row) const {
  std::vector<Cell> cells;
  const Row& one = rows_[shown_[row]];
  for (const std::string& text : one.texts) cells.push_back({text, 0});
  for (std::size_t i = 0; i < numbers_; ++i)
    cells.push_back({fmt::format("{:>{}}", show_number(one.numbers[i]), number_widths_[i]), 0});
  if (form_ == Form::Buckets) cells.push_back({one.bar, 0});
  return cells;
}

std::string LiveTable::identity(std::size_t row) const {
  std::string identity;
  for (const std::string& text : rows_[shown_[row]].texts) identity.append(text).append(1, '\n');
  return identity;
}

const LiveTable::Row* LiveTable::row_here() const {
  return browser_.is_empty() ? nullptr : &rows_[shown_[browser_.cursor().row]];
}

std::optional<TableCounts::Keys> LiveTable::keys_here() const {
  const Row* const row = row_here();
  return row == nullptr ? std::nullopt : std::optional(row->keys);
}

std::string LiveTable::text_here() const {
  std::string text;
  const Row* const row = row_here();
  for (std::size_t i = 0; row != nullptr && i < row->texts.size() && i < head_.keys.size(); ++i) {
    const std::string& key = row->texts[i];
    text += (text.empty() ? "" : ", ") + head_.keys[i] + " ";
    text += key.substr(std::min(key.find_first_not_of(' '), key.size()));
  }
  return text;
}

LiveTable::Flow LiveTable::open_here() {
  const Row* const row = row_here();
  if (row == nullptr) return Flow::Stay;
  if (form_ != Form::Buckets || row->numbers.front().is_true()) return Flow::Open;
  message_ = "no event has such a value";
  return Flow::Stay;
}

LiveTable::Flow LiveTable::on_key(const KeyPress& press) {
  message_.clear();
  if (page_) {
    if (!page_->on_key(press)) page_.reset();
    return Flow::Stay;
  }
  if (question_) {
    const std::string before = filter_;
    const auto answer = question_->on_key(press);
    filter_ = answer == Question::Answer::Closed ? std::string() : question_->text();
    if (answer == Question::Answer::Given || answer == Question::Answer::Closed) question_.reset();
    if (filter_ != before) show();
    return Flow::Stay;
  }
  if (press.is('q')) return Flow::Quit;
  if (press.key == Key::Enter || press.key == Key::Right) return open_here();
  if (press.key == Key::Tab) return Flow::All;
  if (press.is('/')) {
    question_.emplace("Keys to show:", filter_);
  } else if (press.is('h') || press.is('?') || press.key == Key::F1) {
    page_ = TextPage::help(table_help());
  } else if (press.is('<') || press.is('>')) {
    const std::size_t count = head_.keys.size() + numbers_;
    if (count == 0) return Flow::Stay;
    order_ = order_ ? (*order_ + (press.is('>') ? 1 : count - 1)) % count : press.is('>') ? 0 : count - 1;
    show();
    message_ = "sorted by " + columns()[*order_].header;
  } else if (press.key == Key::Escape) {
    filter_.clear();
    show();
  } else if (press.key == Key::Click || press.key == Key::DoubleClick) {
    const auto before = browser_.cursor();
    const bool is_row = browser_.on_key(press);
    if (is_row && (press.key == Key::DoubleClick || browser_.cursor() == before)) return open_here();
  } else if (!browser_.on_key(press) && press.key != Key::None && press.key != Key::Resize) {
    message_ = "no such key here; h: help";
  }
  return Flow::Stay;
}

Frame LiveTable::draw(ScreenSize size) {
  Frame frame(size);
  if (!frame.has_room()) return frame;
  if (page_) {
    page_->draw(frame);
    return frame;
  }
  std::string title = head_.title;
  if (form_ == Form::Table) title += fmt::format(": {} row{}", shown_.size(), shown_.size() == 1 ? "" : "s");
  if (!filter_.empty()) title += " with \"" + filter_ + "\"";
  frame.bar(0, Style::Bar, note_.empty() ? title : title + ", " + note_);
  fit(size.width);
  browser_.draw(frame, 1, size.height - std::size_t{2});
  frame.last_line(message_.empty()
                      ? "h: help  Enter: open  < >: sort  /: filter  f: freeze  w: write  q: quit"
                      : message_);
  if (question_) question_->draw(frame);
  return frame;
}

}  // namespace tacho::report
