#include "report/views/flamegraph/flame_tree.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace tacho::report {

std::uint32_t FlameFrames::number_of(std::string_view name, std::string_view module, FrameKind kind) {
  if (const auto known = numbers_.find({name, module, kind}); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(frames_.size());
  const FlameFrame kept{texts_.keep(name), texts_.keep(module), kind};
  frames_.push_back(kept);
  numbers_.emplace(std::tuple(kept.name, kept.module, kept.kind), number);
  return number;
}

std::vector<std::uint32_t> FlameFrames::ranks() const {
  std::vector<std::uint32_t> ranks(frames_.size());
  std::uint32_t rank = 0;
  for (const auto& [frame, number] : numbers_) ranks[number] = rank++;
  return ranks;
}

void FlameTree::add(std::span<const std::uint32_t> stack, FlameWeight weight) {
  std::size_t same = 0;
  while (same < stack.size() && same < path_.size() && nodes_[path_[same]].frame == stack[same]) ++same;
  path_.resize(same);
  for (const std::uint32_t frame : stack.subspan(same)) {
    const std::uint32_t parent = path_.empty() ? 0 : path_.back();
    const std::uint32_t node = children_.find_or_make(
        children_.hash(parent, frame),
        [&](std::uint32_t known) { return nodes_[known].parent == parent && nodes_[known].frame == frame; },
        [&] {
          nodes_.push_back({parent, frame, {}, {}, 0, 0});
          return static_cast<std::uint32_t>(nodes_.size() - 1);
        });
    path_.push_back(node);
  }
  nodes_[path_.empty() ? 0 : path_.back()].self += weight;
}

namespace {

double width_of(const FlameWeight& weight, WidthOf width) {
  switch (width) {
    case WidthOf::Before:
      return weight.before;
    case WidthOf::Larger:
      return std::max(weight.before, weight.after);
    case WidthOf::Common:
      return std::min(weight.before, weight.after);
    case WidthOf::After:
      break;
  }
  return weight.after;
}

}  // namespace

// Children stand behind their parents, so from the last to the first every node is whole when it is added. The
// larger or the common part is that of each stack: of a frame it may be more, or less, than that of its totals.
void FlameTree::add_up(WidthOf width) {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    node.own_width = width_of(node.self, width);
    node.total += node.self;
    node.width += node.own_width;
    if (node.parent == kNone) continue;
    nodes_[node.parent].total += node.total;
    nodes_[node.parent].width += node.width;
  }
}

void FlameTree::scale_before_to_after() {
  FlameWeight all;
  for (const Node& node : nodes_) all += node.self;
  if (all.before == 0 || all.after == 0) return;
  for (Node& node : nodes_) node.self.before *= all.after / all.before;
}

FlameTree FlameTree::gone() const {
  std::vector<bool> is_needed(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (node.total.after == 0 && node.self.before > 0) is_needed[i] = true;
    if (is_needed[i] && node.parent != kNone) is_needed[node.parent] = true;
  }
  FlameTree gone(nodes_.front().frame);
  std::vector<std::uint32_t> to(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (i != 0 && !is_needed[i]) continue;
    if (i != 0) {
      to[i] = static_cast<std::uint32_t>(gone.nodes_.size());
      gone.nodes_.push_back({to[node.parent], node.frame, {}, {}, 0, 0});
    }
    if (node.total.after == 0) gone.nodes_[to[i]].self.before = node.self.before;
  }
  gone.add_up(WidthOf::Before);
  return gone;
}

FlameDrawing choose_frames(const FlameTree& tree, const FlameFrames& frames, double least, std::size_t most) {
  const auto& nodes = tree.nodes();
  const double thinnest = least * tree.width();
  std::vector<std::uint32_t> chosen;
  std::size_t wide = 0;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    wide += i == 0 || nodes[i].width > 0 ? 1 : 0;
    if (i == 0 || (nodes[i].width > 0 && nodes[i].width >= thinnest)) chosen.push_back(i);
  }
  // A parent is as wide as its children at least and stands before them, so none is left out while a child stays.
  if (chosen.size() > most) {
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      if (nodes[a].width != nodes[b].width) return nodes[a].width > nodes[b].width;
      return a < b;
    };
    const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(chosen.begin(), end, chosen.end(), is_before);
    chosen.erase(end, chosen.end());
  }
  // Children of one parent together, by name; then each parent's are a run of `chosen`.
  const std::vector<std::uint32_t> ranks = frames.ranks();
  std::ranges::sort(chosen, [&](std::uint32_t a, std::uint32_t b) {
    const auto parent = [&](std::uint32_t node) { return node == 0 ? 0 : nodes[node].parent + 1; };
    if (parent(a) != parent(b)) return parent(a) < parent(b);
    return ranks[nodes[a].frame] < ranks[nodes[b].frame];
  });
  const auto children_of = [&](std::uint32_t node) {
    const auto key = [&](std::uint32_t child) { return child == 0 ? 0 : nodes[child].parent + 1; };
    const auto first = std::ranges::lower_bound(chosen, node + 1, {}, key);
    const auto end = std::ranges::upper_bound(chosen, node + 1, {}, key);
    return std::span<const std::uint32_t>(first, end);
  };
  FlameDrawing drawing;
  drawing.frames.reserve(chosen.size());
  std::vector<DrawnFrame> waiting{{0, 0, 0}};
  while (!waiting.empty()) {
    const DrawnFrame frame = waiting.back();
    waiting.pop_back();
    drawing.frames.push_back(frame);
    drawing.rows = std::max(drawing.rows, frame.row + 1);
    double x = frame.x;
    const auto first = static_cast<std::ptrdiff_t>(waiting.size());
    for (const std::uint32_t child : children_of(frame.node)) {
      waiting.push_back({child, frame.row + 1, x});
      x += nodes[child].width;
    }
    std::reverse(waiting.begin() + first, waiting.end());
  }
  drawing.left_out = wide - drawing.frames.size();
  return drawing;
}

}  // namespace tacho::report
