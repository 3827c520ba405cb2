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
          nodes_.push_back({parent, frame, {}, {}, 0, 0, 0});
          return static_cast<std::uint32_t>(nodes_.size() - 1);
        });
    path_.push_back(node);
  }
  const std::uint32_t leaf = path_.empty() ? 0 : path_.back();
  nodes_[leaf].self += weight;
  if (captures_.empty()) return;
  std::vector<double>& own = captures_.back().own;
  if (own.size() < nodes_.size()) own.resize(nodes_.size());
  own[leaf] += weight.before + weight.after;
}

std::vector<double> FlameTree::shares_of(const CaptureWeights& capture, double cost_of_unit) const {
  std::vector<double> shares = capture.own;
  shares.resize(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- > 1;) shares[nodes_[i].parent] += shares[i];
  const double whole = cost_of_unit > 0 ? capture.units * cost_of_unit : shares.front();
  for (double& share : shares) share = whole > 0 ? share / whole : 0;
  return shares;
}

// The rule that --help states: captures of one side differ by chance, so a change counts when it is larger
// than the largest difference within before and the largest within after together.
bool FlameTree::measure_noise() {
  for (const Side side : {Side::Before, Side::After})
    if (std::ranges::count(captures_, side, &CaptureWeights::side) < 2) return false;
  double units = 0;
  for (const CaptureWeights& capture : captures_) units += capture.side == Side::Before ? capture.units : 0;
  const double cost_of_unit = units > 0 ? sum().before / units : 0;
  for (const Side side : {Side::Before, Side::After}) {
    std::vector<double> least, most;
    for (const CaptureWeights& capture : captures_) {
      if (capture.side != side) continue;
      const std::vector<double> shares = shares_of(capture, cost_of_unit);
      if (least.empty()) least = most = shares;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        least[i] = std::min(least[i], shares[i]);
        most[i] = std::max(most[i], shares[i]);
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].noise += most[i] - least[i];
  }
  return true;
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

// Children stand behind their parents, so from the last to the first every node is whole when it is added.
// The larger or the common part is that of each stack: of a frame it may be more, or less, than that of its
// totals.
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

void FlameTree::scale_before(double factor) {
  for (Node& node : nodes_) node.self.before *= factor;
}

FlameWeight FlameTree::sum() const {
  FlameWeight all;
  for (const Node& node : nodes_) all += node.self;
  return all;
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
      // The noise of the vanished part of a caller that still exists is unknown.
      const double noise = node.total.after == 0 ? node.noise : 0;
      gone.nodes_.push_back({to[node.parent], node.frame, {}, {}, 0, 0, noise});
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
  // A parent is as wide as its children at least and stands before them, so none is left out while a child
  // stays.
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
