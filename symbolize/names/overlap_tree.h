// Which of several overlapping ranges covers an address, as perf answers it.
//
// perf keeps symbols in a red-black tree ordered by start and takes the first that covers the address on the
// way down. Where ranges overlap (labels inside functions, code a JIT wrote over other code, PLT entries
// under a function of unknown size) the answer depends on the shape of the tree, and so on the order of every
// insertion and removal. The same tree is built here, only when an address really is covered twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tacho::symbolize {

class OverlapTree {
 public:
  // Ranges are numbered 0 to `count` - 1 by the caller.
  explicit OverlapTree(std::size_t count) : nodes_(count + 1) {}

  // Each number once. `end` is past the last; a range with end == start covers its start alone.
  void insert(std::uint32_t number, std::uint64_t start, std::uint64_t end);
  // The number must be in the tree.
  void erase(std::uint32_t number);
  std::optional<std::uint32_t> find(std::uint64_t address) const;

 private:
  using Index = std::uint32_t;       // into nodes_; a range's number + 1
  static constexpr Index kNone = 0;  // nodes_[0] stands for every missing child and is black
  enum Side : std::uint8_t { Left, Right };
  struct Node {
    std::uint64_t start = 0, end = 0;
    Index parent = kNone;
    Index child[2] = {kNone, kNone};
    bool is_red = false;
  };

  Side side_of(Index node) const { return nodes_[nodes_[node].parent].child[Left] == node ? Left : Right; }
  void put_in_place_of(Index old, Index replacement);
  void rotate(Index top, Side direction);
  void mend_after_insert(Index node);
  void mend_after_erase(Index node);

  std::vector<Node> nodes_;
  Index root_ = kNone;
};

}  // namespace tacho::symbolize
