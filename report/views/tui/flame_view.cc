#include "report/views/tui/flame_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/views/report/report_text.h"

namespace tacho::report {

FlameView::FlameView(std::string title, const std::vector<BrowsedNode>& nodes) : title_(std::move(title)) {
  struct Level {
    std::uint32_t node, child;
    std::size_t box;
    std::uint64_t at;  // start of the next child
  };
  const std::uint64_t all = nodes.empty() ? 0 : nodes[0].weight;
  boxes_.push_back({.name = "all", .function = {}, .weight = all, .thin = all});
  std::vector<Level> levels;
  if (!nodes.empty()) levels.push_back({0, 0, 0, 0});
  while (!levels.empty()) {
    Level& level = levels.back();
    const BrowsedNode& parent = nodes[level.node];
    if (level.child == parent.children) {
      levels.pop_back();
      continue;
    }
    const std::uint32_t number = parent.first_child + level.child++;
    const BrowsedNode& node = nodes[number];
    const std::uint64_t begin = std::exchange(level.at, level.at + node.weight);
    std::size_t above = level.box;
    boxes_[above].thin -= std::min(boxes_[above].thin, node.weight);
    for (std::size_t i = 0; i < node.frames.size(); ++i) {
      const bool is_last = i + 1 == node.frames.size();
      boxes_.push_back({.name = node.frames[i],
                        .function = node.functions[i],
                        .depth = boxes_[above].depth + 1,
                        .parent = above,
                        .begin = begin,
                        .weight = node.weight,
                        .self = is_last ? node.own_weight : 0,
                        .thin = is_last ? node.weight - std::min(node.weight, node.own_weight) : 0});
      above = boxes_.size() - 1;
    }
    if (!node.frames.empty()) levels.push_back({number, 0, above, begin});
  }
}

bool FlameView::is_in_zoom(const Box& box) const {
  const Box& zoom = boxes_[zoomed_];
  // Callers of the zoomed frame have the full width.
  return box.begin < zoom.begin + zoom.weight && zoom.begin < box.begin + box.weight;
}

FlameView::Columns FlameView::columns_of_box(const Box& box, std::size_t width) const {
  const Box& zoom = boxes_[zoomed_];
  const auto column = [&](std::uint64_t at) {
    const std::uint64_t from = std::clamp(at, zoom.begin, zoom.begin + zoom.weight) - zoom.begin;
    return zoom.weight == 0
               ? 0
               : static_cast<std::size_t>(static_cast<double>(from) * static_cast<double>(width) /
                                          static_cast<double>(zoom.weight));
  };
  return {column(box.begin), column(box.begin + box.weight)};
}

// The next box of the same depth that is at least a column wide.
std::size_t FlameView::neighbour(bool is_right) const {
  std::size_t found = selected_;
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const Box& box = boxes_[i];
    if (box.depth != boxes_[selected_].depth || i == selected_ || !is_in_zoom(box)) continue;
    const auto [begin, end] = columns_of_box(box, width_);
    if (begin == end || (box.begin > boxes_[selected_].begin) != is_right) continue;
    const bool is_nearer =
        found == selected_ || (is_right ? box.begin < boxes_[found].begin : box.begin > boxes_[found].begin);
    if (is_nearer) found = i;
  }
  return found;
}

std::size_t FlameView::first_child() const {
  std::size_t heaviest = selected_;
  for (std::size_t i = selected_ + 1; i < boxes_.size(); ++i)
    if (boxes_[i].parent == selected_ &&
        (heaviest == selected_ || boxes_[i].weight > boxes_[heaviest].weight))
      heaviest = i;
  return heaviest;
}

FlameView::Flow FlameView::on_key(const KeyPress& press) {
  switch (press.key) {
    case Key::Up:
      selected_ = boxes_[selected_].parent;
      return Flow::Stay;
    case Key::Down:
      selected_ = first_child();
      return Flow::Stay;
    case Key::Left:
    case Key::Right:
      selected_ = neighbour(press.key == Key::Right);
      return Flow::Stay;
    case Key::Home:
      selected_ = zoomed_ = 0;
      return Flow::Stay;
    case Key::PageUp:
    case Key::WheelUp:
      top_ -= std::min(top_, height_ / 2);
      return Flow::Stay;
    case Key::PageDown:
    case Key::WheelDown:
      top_ += height_ / 2;
      return Flow::Stay;
    case Key::Enter:
      zoomed_ = selected_;
      return Flow::Stay;
    case Key::Escape:
    case Key::Backspace:
      if (zoomed_ == 0) return Flow::Leave;
      zoomed_ = boxes_[zoomed_].parent;
      return Flow::Stay;
    case Key::Click:
    case Key::DoubleClick:
      for (std::size_t i = 0; i < boxes_.size(); ++i) {
        const auto [begin, end] = columns_of_box(boxes_[i], width_);
        if (boxes_[i].depth + 1 != press.row + top_ || !is_in_zoom(boxes_[i]) || press.column < begin ||
            press.column >= end)
          continue;
        if (selected_ == i || press.key == Key::DoubleClick) zoomed_ = i;
        selected_ = i;
        break;
      }
      return Flow::Stay;
    default:
      return press.is('q') || press.is('f') ? Flow::Leave : Flow::Unknown;
  }
}

std::string FlameView::status() const {
  const Box& box = boxes_[selected_];
  std::string shares = fmt::format(": {:.2f}% of all, {:.2f}% self", percent_of(box.weight, boxes_[0].weight),
                                   percent_of(box.self, boxes_[0].weight));
  if (box.thin > 0)
    shares += fmt::format(", {:.2f}% in callees too thin to draw", percent_of(box.thin, boxes_[0].weight));
  if (zoomed_ != 0)
    shares += fmt::format(", {:.2f}% of the zoom", percent_of(box.weight, boxes_[zoomed_].weight));
  const std::string_view keys = "  h: help  q: back";
  const std::size_t used = shares.size() + keys.size();
  std::string text = fit_middle(box.name, width_ > used + 8 ? width_ - used : 8) + shares;
  return columns_of(text) + keys.size() <= width_ ? text.append(keys) : text;
}

void FlameView::draw(Frame& frame) {
  width_ = frame.size.width;
  height_ = frame.size.height > 2 ? frame.size.height - std::size_t{2} : 1;
  frame.bar(0, Style::Bar, title_);
  std::size_t deepest = 0;
  for (const Box& box : boxes_) deepest = std::max(deepest, box.depth);
  top_ = top_showing(boxes_[selected_].depth, top_, height_, deepest + 1);
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const Box& box = boxes_[i];
    if (box.depth < top_ || box.depth >= top_ + height_ || !is_in_zoom(box)) continue;
    const auto [begin, end] = columns_of_box(box, width_);
    if (begin == end) continue;
    const std::size_t room = end - begin;
    std::string text = "│" + fit_middle(box.name, room - 1);
    const double part = percent_of(box.self, boxes_[0].weight);
    const Style style = i == selected_ ? Style::Bar
                        : part >= 5    ? Style::High
                        : part > 0.5   ? Style::Medium
                                       : Style::Normal;
    frame.put_text(1 + box.depth - top_, begin, style, padded_to(std::move(text), room));
  }
  frame.last_line(status());
}

}  // namespace tacho::report
