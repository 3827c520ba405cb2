// perf puts rows into red-black trees one after another, by comparisons that contradict each other here and
// there: the depth of a chain decides between rows of one thread only, the name only where a call was
// inlined. What comes of it depends on the way. This is such a tree, in one array, and it goes the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "format/large_pages.h"

namespace tacho::report {

// `Item`: small, as it is copied into the tree; `IsBefore`: of two items. Equal ones stand as they came.
template <class Item, class IsBefore>
class OrderTree {
 public:
  OrderTree(std::size_t most, IsBefore is_before) : is_before_(std::move(is_before)) {
    nodes_.reserve(most + 1);
    nodes_.push_back({});  // what ends every way down: black
  }

  void insert(const Item& item) {
    std::uint32_t above = kEnd;
    bool is_left = false;
    for (std::uint32_t at = root_; at != kEnd; at = nodes_[at].below[is_left ? 0 : 1]) {
      above = at;
      is_left = is_before_(item, nodes_[at].item);
    }
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({item, {kEnd, kEnd}, above, true});
    if (above == kEnd) {
      root_ = made;
    } else {
      nodes_[above].below[is_left ? 0 : 1] = made;
    }
    balance(made);
  }

  // Calls visit(item) for each, in order.
  template <class Visit>
  void walk(Visit&& visit) const {
    std::vector<std::uint32_t> above;
    for (std::uint32_t at = root_; at != kEnd || !above.empty();) {
      for (; at != kEnd; at = nodes_[at].below[0]) above.push_back(at);
      at = above.back();
      above.pop_back();
      visit(nodes_[at].item);
      at = nodes_[at].below[1];
    }
  }

 private:
  static constexpr std::uint32_t kEnd = 0;
  struct Node {
    Item item{};
    std::uint32_t below[2] = {kEnd, kEnd};  // left, right
    std::uint32_t above = kEnd;
    bool is_red = false;
  };

  // Puts the node's child on `side` in its place, and the node on the other side below that.
  void rotate(std::uint32_t node, int side) {
    const std::uint32_t child = nodes_[node].below[side];
    const std::uint32_t moved = nodes_[child].below[1 - side];
    const std::uint32_t above = nodes_[node].above;
    nodes_[node].below[side] = moved;
    if (moved != kEnd) nodes_[moved].above = node;
    nodes_[child].above = above;
    if (above == kEnd) {
      root_ = child;
    } else {
      nodes_[above].below[nodes_[above].below[0] == node ? 0 : 1] = child;
    }
    nodes_[child].below[1 - side] = node;
    nodes_[node].above = child;
  }

  // No red node stands below a red one: what a new node needs for that, as in every textbook.
  void balance(std::uint32_t node) {
    while (nodes_[nodes_[node].above].is_red) {
      std::uint32_t parent = nodes_[node].above;
      const std::uint32_t grand = nodes_[parent].above;
      const int side = nodes_[grand].below[0] == parent ? 0 : 1;
      const std::uint32_t uncle = nodes_[grand].below[1 - side];
      if (nodes_[uncle].is_red) {
        nodes_[parent].is_red = nodes_[uncle].is_red = false;
        nodes_[grand].is_red = true;
        node = grand;
        continue;
      }
      if (nodes_[parent].below[1 - side] == node) {
        rotate(parent, 1 - side);
        std::swap(node, parent);
      }
      nodes_[parent].is_red = false;
      nodes_[grand].is_red = true;
      rotate(grand, side);
    }
    nodes_[root_].is_red = false;
  }

  IsBefore is_before_;
  std::vector<Node, format::LargePages<Node>> nodes_;
  std::uint32_t root_ = kEnd;
};

// The items, as they come, in the order of such a tree.
template <class Item, class IsBefore>
void put_in_tree_order(std::span<Item> items, IsBefore is_before) {
  OrderTree<Item, IsBefore> tree(items.size(), std::move(is_before));
  for (const Item& item : items) tree.insert(item);
  std::size_t at = 0;
  tree.walk([&](const Item& item) { items[at++] = item; });
}

}  // namespace tacho::report
