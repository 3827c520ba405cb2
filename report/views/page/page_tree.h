// What the captures of a page share: texts, functions, and call chains as a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/profile/frame_names.h"
#include "report/profile/function_names.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Nothing here is recursive: a stack may be 100,000 frames deep.

// Interned texts that are safe to print. Number 0 is the empty text.
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

// page/flame.js has the letters of the kinds.
struct PageFrame {
  std::uint32_t name = 0, module = 0;  // texts; no module: 0
  FrameKind kind = FrameKind::User;
  NameId function = kNo<NameId>;  // of PageParts::functions; kNo: no function
  bool operator==(const PageFrame&) const = default;
};

// Call chains as a prefix tree: a node for each frame below its caller's node. Node 0 is the root.
class PageTree {
 public:
  PageTree() { nodes_.push_back({0, frame_of({0, 0, FrameKind::All})}); }
  std::uint32_t frame_of(const PageFrame& frame);
  // The node of a chain, root first, by numbers of frames.
  std::uint32_t node_of(std::span<const std::uint32_t> chain);
  // Each frame becomes frames[frame], and nodes that are then equal are merged. Returns by node its new
  // number.
  std::vector<std::uint32_t> replace_frames(std::span<const std::uint32_t> frames);
  // After all frames have numbers: overloads get their parameters.
  void show_parameters(FunctionNames& functions, PageTexts& texts);

  struct Node {
    std::uint32_t parent = 0, frame = 0;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<PageFrame>& frames() const { return frames_; }

  // The nodes in the order of a page: siblings by name, callees before their caller, so that a subtree is a
  // range.
  struct Order {
    std::vector<std::uint32_t> nodes;      // by position
    std::vector<std::uint32_t> positions;  // by node
  };
  Order order(const PageTexts& texts) const;

 private:
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);

  IndexTable<> by_frame_, by_node_;
  std::vector<PageFrame> frames_;
  std::vector<Node> nodes_;
  // Nodes of the last chain, root first: most chains share a prefix with it.
  std::vector<std::uint32_t> path_;
};

// Tables that all captures of a page share.
struct PageParts {
  PageTexts texts;
  FunctionNames functions{FunctionNames::Texts::Copied};
  PageTree tree;
};

}  // namespace tacho::report
