// The texts, frames and call chains that a page shows, each once, as numbers.
//
// Everything here goes from one frame to the next without recursion: a stack may be 100,000 frames deep.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/samples/index_table.h"

namespace tacho::report {

// Texts that are safe to print. Number 0 is the empty text.
class PageTexts {
 public:
  PageTexts() { number_of(""); }
  std::uint32_t number_of(std::string_view text);
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return store_.size(); }

 private:
  TextStore store_;
  std::unordered_map<std::string_view, std::uint32_t, format::SeededTextHash> numbers_;
  std::vector<std::string_view> texts_;
};

// Letters of page/flame.js.
enum class PageKind : char {
  All = 'a',
  Thread = 't',
  User = 'u',
  Kernel = 'k',
  Inlined = 'i',
  Jit = 'j',
  Bpf = 'b',
  Unnamed = 'n',
};

struct PageFrame {
  std::uint32_t name = 0, module = 0;  // texts; no module: 0
  PageKind kind = PageKind::User;
  bool operator==(const PageFrame&) const = default;
};

// Call chains as a prefix tree: each node is a frame below its caller's. Node 0 is everything.
class PageTree {
 public:
  PageTree() { nodes_.push_back({0, frame_of({0, 0, PageKind::All})}); }
  std::uint32_t frame_of(const PageFrame& frame);
  // The node of a chain, root first, by numbers of frames.
  std::uint32_t node_of(std::span<const std::uint32_t> chain);

  struct Node {
    std::uint32_t parent = 0, frame = 0;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<PageFrame>& frames() const { return frames_; }

  // The nodes in the order of a page: callees beside each other by their names, and each before its caller,
  // so that a node and all below it stand in a row.
  struct Order {
    std::vector<std::uint32_t> nodes;   // by place
    std::vector<std::uint32_t> places;  // by node
  };
  Order order(const PageTexts& texts) const;

 private:
  IndexTable by_frame_, by_node_;
  std::vector<PageFrame> frames_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> path_;  // nodes of the last chain, root first: most share the first ones with it
};

// What all captures of a page share.
struct PageParts {
  PageTexts texts;
  PageTree tree;
};

}  // namespace tacho::report
