#include "report/views/page/page_tree.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "report/output/text_output.h"

namespace tacho::report {

std::uint32_t PageTexts::number_of(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(store_.keep(text));
  numbers_.emplace(texts_.back(), number);
  return number;
}

std::uint32_t PageTree::frame_of(const PageFrame& frame) {
  return by_frame_.find_or_make(
      by_frame_.hash(frame.name, frame.module, static_cast<int>(frame.kind), frame.function),
      [&](std::uint32_t known) { return frames_[known] == frame; },
      [&] {
        frames_.push_back(frame);
        return static_cast<std::uint32_t>(frames_.size() - 1);
      });
}

void PageTree::show_parameters(FunctionNames& functions, PageTexts& texts) {
  for (PageFrame& frame : frames_) {
    if (frame.function == kNo<NameId>) continue;
    const std::string_view shown = functions.shown(frame.function);
    if (shown != functions.name(frame.function)) frame.name = texts.number_of(printable(shown));
  }
}

std::uint32_t PageTree::node_of(std::span<const std::uint32_t> chain) {
  std::size_t same = 0;
  while (same < chain.size() && same < path_.size() && nodes_[path_[same]].frame == chain[same]) ++same;
  path_.resize(same);
  for (const std::uint32_t frame : chain.subspan(same)) {
    const std::uint32_t parent = path_.empty() ? 0 : path_.back();
    path_.push_back(child(parent, frame));
  }
  return path_.empty() ? 0 : path_.back();
}

std::uint32_t PageTree::child(std::uint32_t parent, std::uint32_t frame) {
  return by_node_.find_or_make(
      by_node_.hash(parent, frame),
      [&](std::uint32_t known) { return nodes_[known].parent == parent && nodes_[known].frame == frame; },
      [&] {
        nodes_.push_back({parent, frame});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
      });
}

std::vector<std::uint32_t> PageTree::replace_frames(std::span<const std::uint32_t> frames) {
  const std::vector<Node> old = std::exchange(nodes_, {nodes_.front()});
  by_node_.forget();
  path_.clear();
  std::vector<std::uint32_t> moved(old.size());
  for (std::size_t node = 1; node < old.size(); ++node)  // a node is after its caller
    moved[node] = child(moved[old[node].parent], frames[old[node].frame]);
  return moved;
}

PageTree::Order PageTree::order(const PageTexts& texts) const {
  std::vector<std::uint32_t> sorted(frames_.size()), ranks(frames_.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  const auto key = [&](std::uint32_t frame) {
    const PageFrame& one = frames_[frame];
    return std::tuple(texts[one.name], texts[one.module], one.kind, frame);
  };
  std::ranges::sort(sorted, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::uint32_t rank = 0; rank < sorted.size(); ++rank) ranks[sorted[rank]] = rank;

  // The callees of a node start at starts[node].
  const std::size_t count = nodes_.size();
  std::vector<std::uint32_t> by_rank(count), starts(count), callees(count);
  starts.push_back(0);
  std::iota(by_rank.begin(), by_rank.end(), 0U);
  std::ranges::sort(by_rank, {}, [&](std::uint32_t node) { return ranks[nodes_[node].frame]; });
  for (std::size_t node = 1; node < count; ++node) ++starts[nodes_[node].parent + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<std::uint32_t> next = starts;
  for (const std::uint32_t node : by_rank)
    if (node != 0) callees[next[nodes_[node].parent]++] = node;

  Order order;
  order.nodes.reserve(count);
  order.positions.resize(count);
  std::vector<std::uint32_t> open{0};
  next = starts;
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    if (next[node] < starts[node + 1]) {
      open.push_back(callees[next[node]++]);
      continue;
    }
    order.positions[node] = static_cast<std::uint32_t>(order.nodes.size());
    order.nodes.push_back(node);
    open.pop_back();
  }
  return order;
}

}  // namespace tacho::report
