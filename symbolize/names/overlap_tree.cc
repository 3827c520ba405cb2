#include "symbolize/names/overlap_tree.h"

#include <cassert>

namespace tacho::symbolize {
namespace {

constexpr auto other(auto side) { return static_cast<decltype(side)>(1 - side); }

}  // namespace

std::optional<std::uint32_t> OverlapTree::find(std::uint64_t address) const {
  for (Index at = root_; at != kNone;) {
    const Node& node = nodes_[at];
    if (address < node.start) {
      at = node.child[Left];
    } else if (address >= node.end && address != node.start) {
      at = node.child[Right];
    } else {
      return at - 1;
    }
  }
  return std::nullopt;
}

void OverlapTree::put_in_place_of(Index old, Index replacement) {
  const Index parent = nodes_[old].parent;
  if (parent == kNone) {
    root_ = replacement;
  } else {
    nodes_[parent].child[side_of(old)] = replacement;
  }
  nodes_[replacement].parent = parent;  // also of kNone: mend_after_erase climbs from it
}

// Moves `top` down to the side `direction`; its other child takes its place.
void OverlapTree::rotate(Index top, Side direction) {
  const Side from = other(direction);
  const Index rising = nodes_[top].child[from];
  const Index inner = nodes_[rising].child[direction];
  nodes_[top].child[from] = inner;
  if (inner != kNone) nodes_[inner].parent = top;
  put_in_place_of(top, rising);
  nodes_[rising].child[direction] = top;
  nodes_[top].parent = rising;
}

void OverlapTree::insert(std::uint32_t number, std::uint64_t start, std::uint64_t end) {
  const Index added = number + 1;
  assert(added < nodes_.size());
  Index parent = kNone;
  Side side = Left;
  for (Index at = root_; at != kNone; at = nodes_[at].child[side]) {
    parent = at;
    side = start < nodes_[at].start ? Left : Right;  // equal starts: later ones to the right
  }
  nodes_[added] = Node{start, end, parent, {kNone, kNone}, true};
  if (parent == kNone) {
    root_ = added;
  } else {
    nodes_[parent].child[side] = added;
  }
  mend_after_insert(added);
}

void OverlapTree::mend_after_insert(Index node) {
  while (nodes_[nodes_[node].parent].is_red) {
    Index parent = nodes_[node].parent;
    const Index grandparent = nodes_[parent].parent;
    const Side side = side_of(parent);
    const Index uncle = nodes_[grandparent].child[other(side)];
    if (nodes_[uncle].is_red) {
      nodes_[parent].is_red = nodes_[uncle].is_red = false;
      nodes_[grandparent].is_red = true;
      node = grandparent;
      continue;
    }
    if (side_of(node) != side) {
      rotate(parent, side);
      parent = node;
    }
    nodes_[parent].is_red = false;
    nodes_[grandparent].is_red = true;
    rotate(grandparent, other(side));
    break;
  }
  nodes_[root_].is_red = false;
}

void OverlapTree::erase(std::uint32_t number) {
  const Index gone = number + 1;
  const Node old = nodes_[gone];
  Index moved = kNone;  // what now stands where a node was taken out
  bool took_black = !old.is_red;
  if (old.child[Left] == kNone || old.child[Right] == kNone) {
    moved = old.child[Left] == kNone ? old.child[Right] : old.child[Left];
    put_in_place_of(gone, moved);
  } else {
    Index next = old.child[Right];
    while (nodes_[next].child[Left] != kNone) next = nodes_[next].child[Left];
    took_black = !nodes_[next].is_red;
    moved = nodes_[next].child[Right];
    if (next == old.child[Right]) {
      nodes_[moved].parent = next;
    } else {
      put_in_place_of(next, moved);
      nodes_[next].child[Right] = old.child[Right];
      nodes_[old.child[Right]].parent = next;
    }
    put_in_place_of(gone, next);
    nodes_[next].child[Left] = old.child[Left];
    nodes_[old.child[Left]].parent = next;
    nodes_[next].is_red = old.is_red;
  }
  if (took_black) mend_after_erase(moved);
  nodes_[kNone] = Node{};
}

void OverlapTree::mend_after_erase(Index node) {
  while (node != root_ && !nodes_[node].is_red) {
    const Index parent = nodes_[node].parent;
    const Side side = side_of(node);
    Index sibling = nodes_[parent].child[other(side)];
    if (nodes_[sibling].is_red) {
      nodes_[sibling].is_red = false;
      nodes_[parent].is_red = true;
      rotate(parent, side);
      sibling = nodes_[parent].child[other(side)];
    }
    const Index near = nodes_[sibling].child[side];
    const Index far = nodes_[sibling].child[other(side)];
    if (!nodes_[near].is_red && !nodes_[far].is_red) {
      nodes_[sibling].is_red = true;
      node = parent;
      continue;
    }
    if (!nodes_[far].is_red) {
      nodes_[near].is_red = false;
      nodes_[sibling].is_red = true;
      rotate(sibling, other(side));
      sibling = nodes_[parent].child[other(side)];
    }
    nodes_[sibling].is_red = nodes_[parent].is_red;
    nodes_[parent].is_red = false;
    nodes_[nodes_[sibling].child[other(side)]].is_red = false;
    rotate(parent, side);
    node = root_;
  }
  nodes_[node].is_red = false;
}

}  // namespace tacho::symbolize
