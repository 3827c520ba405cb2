// Mapping, and MappingList: the mappings of one address space by address, without overlaps.
//
// A persistent search tree: copies share nodes, and a write copies the path to the changed node only. A fork
// costs nothing, a change in the child some hundred bytes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "format/records/address.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

// A mapping: a range of a process's or the kernel's addresses.

// Lives as long as the AddressSpaces it came from, also after it was unmapped, and its address (the pointer)
// is its identity: one lookup result can be kept per (mapping, ip).
struct Mapping {
  const Module* module = nullptr;
  std::uint64_t start = 0, end = 0;  // runtime addresses, end is past the last
  std::uint64_t page_offset = 0;     // bytes into the file
  std::uint32_t protection = 0;      // PROT_*
  std::uint32_t pid = 0;             // of the process (perf maps are named by it); -1: the kernel
  bool is_identity = false;          // kernel, BPF: shown addresses are runtime addresses

  // perf's "map-relative" address, which perf prints: an offset in the file.
  std::uint64_t shown_address(format::RuntimeAddress ip) const {
    return is_identity ? ip.value : ip.value - start + page_offset;
  }
  // What a report shows of an address without a name: code of a kernel module counts from where it was
  // loaded.
  std::uint64_t nameless_address(format::RuntimeAddress ip) const {
    const bool is_module = module->kind == ModuleKind::KernelModule;
    return is_module ? ip.value - start + page_offset : shown_address(ip);
  }
};

// A range of a process's addresses, first and last, inside one mapping or between two.
struct AddressRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  const Mapping* mapping = nullptr;
};

class MappingList {
 public:
  // The mapping that covers `address`; null when there is none.
  const Mapping* find(std::uint64_t address) const { return range_at(address).mapping; }
  // The same, and the range of addresses for which the result is valid.
  AddressRange range_at(std::uint64_t address) const;
  // Removes every mapping that overlaps [start, end), and returns them in ascending order.
  std::vector<const Mapping*> take(std::uint64_t start, std::uint64_t end);
  // Adds a mapping over none of the others. `priority` keeps the tree flat: any number that depends on
  // mapping->start alone, as long as makers of captures cannot foresee it.
  void add(const Mapping* mapping, std::uint32_t priority);
  bool is_empty() const { return root_.get() == nullptr; }
  // All, in ascending order.
  std::vector<const Mapping*> all() const;

 private:
  struct Node;
  // Reference to a node, counted; not atomic, so all lists belong to one thread.
  class NodeRef {
   public:
    NodeRef() = default;
    explicit NodeRef(Node* fresh) : node_(fresh) {}
    NodeRef(const NodeRef& other);
    NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    NodeRef& operator=(NodeRef other) noexcept {
      std::swap(node_, other.node_);
      return *this;
    }
    ~NodeRef();
    explicit operator bool() const { return node_ != nullptr; }
    const Node* operator->() const { return node_; }
    const Node* get() const { return node_; }
    Node& own();  // to be written: a copy of its own when others hold it too

   private:
    Node* node_ = nullptr;
  };
  static std::pair<NodeRef, NodeRef> split(NodeRef tree, std::uint64_t start);
  static NodeRef join(NodeRef low, NodeRef high);
  static void list(const Node* tree, std::vector<const Mapping*>& out);

  NodeRef root_;
};

}  // namespace tacho::symbolize
