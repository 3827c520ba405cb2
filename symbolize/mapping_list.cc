#include "symbolize/mapping_list.h"

namespace tacho::symbolize {

// A treap: ordered by start, and no node has a higher priority than the one above it. With priorities that
// are as good as random its depth is a small multiple of the logarithm of its size, whatever comes in which
// order.
struct MappingList::Node {
  NodeRef low, high;  // the mappings before, and behind
  const Mapping* mapping = nullptr;
  std::uint64_t start = 0;  // mapping->start
  std::uint32_t priority = 0;
  std::uint32_t holders = 1;
};

MappingList::NodeRef::NodeRef(const NodeRef& other) : node_(other.node_) {
  if (node_ != nullptr) ++node_->holders;
}

MappingList::NodeRef::~NodeRef() {
  if (node_ != nullptr && --node_->holders == 0) delete node_;
}

MappingList::Node& MappingList::NodeRef::own() {
  if (node_->holders > 1) {
    Node* const copy = new Node(*node_);
    copy->holders = 1;
    *this = NodeRef(copy);
  }
  return *node_;
}

// What begins before `start`, and what begins there or behind.
std::pair<MappingList::NodeRef, MappingList::NodeRef> MappingList::split(NodeRef tree, std::uint64_t start) {
  if (!tree) return {};
  Node& node = tree.own();
  if (node.start < start) {
    auto [low, high] = split(std::move(node.high), start);
    node.high = std::move(low);
    return {std::move(tree), std::move(high)};
  }
  auto [low, high] = split(std::move(node.low), start);
  node.low = std::move(high);
  return {std::move(low), std::move(tree)};
}

// All of `low` is before all of `high`.
MappingList::NodeRef MappingList::join(NodeRef low, NodeRef high) {
  if (!low) return high;
  if (!high) return low;
  if (low->priority >= high->priority) {
    Node& node = low.own();
    node.high = join(std::move(node.high), std::move(high));
    return low;
  }
  Node& node = high.own();
  node.low = join(std::move(low), std::move(node.low));
  return high;
}

AddressRange MappingList::range_at(std::uint64_t address) const {
  const Node *before = nullptr, *behind = nullptr;  // the last that begins at or before the address, the next
  for (const Node* node = root_.get(); node != nullptr;) {
    const bool is_before = node->start <= address;
    (is_before ? before : behind) = node;
    node = is_before ? node->high.get() : node->low.get();
  }
  const bool is_inside = before != nullptr && address < before->mapping->end;
  if (is_inside) return {before->start, before->mapping->end - 1, before->mapping};
  AddressRange gap;
  if (before != nullptr) gap.first = before->mapping->end;
  if (behind != nullptr) gap.last = behind->start - 1;
  return gap;
}

std::vector<const Mapping*> MappingList::take(std::uint64_t start, std::uint64_t end) {
  // One that begins before may reach into the range; no other does, as they do not overlap.
  const Mapping* const reaching = find(start);
  const std::uint64_t from = reaching != nullptr ? reaching->start : start;
  auto [before, rest] = split(std::move(root_), from);
  auto [taken, behind] = split(std::move(rest), end);
  root_ = join(std::move(before), std::move(behind));
  std::vector<const Mapping*> mappings;
  list(taken.get(), mappings);
  return mappings;
}

void MappingList::add(const Mapping* mapping, std::uint32_t priority) {
  auto [before, behind] = split(std::move(root_), mapping->start);
  NodeRef fresh(new Node{{}, {}, mapping, mapping->start, priority});
  root_ = join(join(std::move(before), std::move(fresh)), std::move(behind));
}

void MappingList::list(const Node* tree, std::vector<const Mapping*>& out) {
  if (tree == nullptr) return;
  list(tree->low.get(), out);
  out.push_back(tree->mapping);
  list(tree->high.get(), out);
}

std::vector<const Mapping*> MappingList::all() const {
  std::vector<const Mapping*> mappings;
  list(root_.get(), mappings);
  return mappings;
}

}  // namespace tacho::symbolize
