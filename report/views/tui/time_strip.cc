#include "report/views/tui/time_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::size_t kBars = TimeStrip::kRows - 2, kEighths = 8;

std::string seconds(std::uint64_t time) { return fmt::format("{}.{:09}", time / kSecond, time % kSecond); }
}  // namespace

std::string short_seconds(std::uint64_t time) {
  return fmt::format("{}.{:03}", time / kSecond, time % kSecond / 1'000'000);
}

void TimeCounts::join_pairs() {
  if (begin_ / width_ % 2 != 0) {
    counts_.insert(counts_.begin(), 0);
    begin_ -= width_;
  }
  for (std::size_t i = 0; i < counts_.size(); i += 2)
    counts_[i / 2] = counts_[i] + (i + 1 < counts_.size() ? counts_[i + 1] : 0);
  counts_.resize((counts_.size() + 1) / 2);
  width_ *= 2;
}

void TimeCounts::add_time(std::uint64_t time) {
  constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;  // ns; later times are damage
  time = std::min(time, kLatest);
  if (counts_.empty()) begin_ = time - time % width_;
  // A sample may be older than the first one read.
  while (time < begin_) {
    const std::uint64_t missing = begin_ / width_ - time / width_;
    if (missing + counts_.size() > kMost) {
      join_pairs();
      continue;
    }
    counts_.insert(counts_.begin(), static_cast<std::size_t>(missing), 0);
    begin_ -= missing * width_;
  }
  while ((time - begin_) / width_ >= kMost) join_pairs();
  const auto at = static_cast<std::size_t>((time - begin_) / width_);
  if (at >= counts_.size()) counts_.resize(at + 1);
  ++counts_[at];
}

std::vector<std::uint64_t> TimeCounts::columns(std::size_t count) const {
  std::vector<std::uint64_t> columns(count);
  if (count == 0) return columns;
  if (counts_.size() < count) {  // there are more columns than intervals
    for (std::size_t column = 0; column < count && !counts_.empty(); ++column)
      columns[column] = counts_[column * counts_.size() / count];
    return columns;
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) columns[i * count / counts_.size()] += counts_[i];
  return columns;
}

TimeStrip::TimeStrip(const TimeCounts& counts, State state) : counts_(&counts), state_(std::move(state)) {
  if (state_.cursor < counts.begin() || state_.cursor >= counts.end()) state_.cursor = counts.begin();
  state_.is_open = true;
}

std::size_t TimeStrip::column_of(std::uint64_t time) const {
  const auto all = static_cast<double>(counts_->end() - counts_->begin());
  const auto part = static_cast<double>(time - std::min(time, counts_->begin()));
  return std::min(static_cast<std::size_t>(part / all * static_cast<double>(width_)), width_ - 1);
}

std::uint64_t TimeStrip::begin_of(std::size_t column) const {
  const auto all = static_cast<double>(counts_->end() - counts_->begin());
  const double share = static_cast<double>(column) / static_cast<double>(width_);
  // Rounded up, so that column_of() of it is this column.
  return counts_->begin() + static_cast<std::uint64_t>(all * share + 0.5);
}

void TimeStrip::move_to(std::size_t column) {
  state_.cursor = begin_of(std::min(column, width_ - 1));
  if (column_of(state_.cursor) < column && column < width_) ++state_.cursor;
}

std::pair<std::uint64_t, std::uint64_t> TimeStrip::selection() const {
  const std::uint64_t other = state_.mark.value_or(state_.cursor);
  const auto [first, last] = std::minmax({column_of(state_.cursor), column_of(other)});
  return {begin_of(first), std::max(begin_of(last + 1), std::uint64_t{1}) - 1};
}

std::string TimeStrip::range() const {
  const auto [first, last] = selection();
  return seconds(first) + "," + seconds(last);
}

TimeStrip::Flow TimeStrip::on_key(const KeyPress& press) {
  constexpr std::size_t kPage = 10;  // columns
  const std::size_t column = column_of(state_.cursor);
  switch (press.key) {
    case Key::Left:
      move_to(column - std::min<std::size_t>(column, 1));
      break;
    case Key::Right:
      move_to(column + 1);
      break;
    case Key::PageUp:
      move_to(column - std::min(column, kPage));
      break;
    case Key::PageDown:
      move_to(column + kPage);
      break;
    case Key::Home:
      move_to(0);
      break;
    case Key::End:
      move_to(width_ - 1);
      break;
    case Key::Click:
    case Key::DoubleClick:
      if (press.row < first_ || press.row >= first_ + kRows) return Flow::Unknown;
      move_to(press.column);
      break;
    case Key::Backspace:
      state_.mark.reset();
      state_.chosen.reset();
      return Flow::All;
    case Key::Enter:
      state_.chosen = selection();
      return Flow::Chosen;
    default:
      if (press.key == Key::Escape || press.is('T') || press.is('q')) {
        state_.is_open = false;
        return Flow::Leave;
      }
      if (!press.is(' ')) return Flow::Unknown;
      state_.mark = state_.mark ? std::nullopt : std::optional(state_.cursor);
  }
  return Flow::Stay;
}

void TimeStrip::draw(Frame& frame, std::size_t first) {
  width_ = std::max<std::size_t>(frame.size.width, 1);
  first_ = first;
  const auto counts = counts_->columns(width_);
  const std::uint64_t most = std::max<std::uint64_t>(*std::ranges::max_element(counts), 1);
  const std::size_t cursor = column_of(state_.cursor), mark = column_of(state_.mark.value_or(state_.cursor));
  const auto is_in = [&](std::size_t column) {
    if (state_.mark) return column >= std::min(cursor, mark) && column <= std::max(cursor, mark);
    return state_.chosen && column >= column_of(state_.chosen->first) &&
           column <= column_of(state_.chosen->second);
  };
  frame.bar(first, Style::Bar,
            fmt::format("Samples over time: {} at {} s{}", counts[cursor], short_seconds(begin_of(cursor)),
                        state_.mark ? fmt::format(", marked from {} s", short_seconds(begin_of(mark))) : ""));
  for (std::size_t row = 0; row < kBars; ++row) {
    // Columns of one style are written together.
    for (std::size_t column = 0; column < width_;) {
      const std::size_t begin = column;
      const bool inside = is_in(begin);
      std::string text;
      for (; column < width_ && is_in(column) == inside && (column == begin || column != cursor); ++column) {
        const std::uint64_t height = (counts[column] * kBars * kEighths + most - 1) / most;  // eighths
        const std::uint64_t below = (kBars - 1 - row) * kEighths;
        text += kBlocks.at(
            static_cast<std::size_t>(std::min<std::uint64_t>(height > below ? height - below : 0, kEighths)));
        if (column == cursor) {
          ++column;
          break;
        }
      }
      frame.put_text(first + 1 + row, begin,
                     begin == cursor ? Style::Box
                     : inside        ? Style::High
                                     : Style::Medium,
                     text);
    }
  }
  frame.put_text(first + kRows - 1, 0, Style::Quiet, short_seconds(counts_->begin()) + " s");
  const std::string end = short_seconds(counts_->end()) + " s";
  if (end.size() < width_) frame.put_text(first + kRows - 1, width_ - end.size(), Style::Quiet, end);
}

}  // namespace tacho::report
