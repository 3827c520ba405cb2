// A flame graph in characters: callees below their caller, each as wide as its share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/views/tui/browser.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

class FlameView {
 public:
  // `nodes`: a call graph that begins with the caller, with weights; node 0 is all of it.
  FlameView(std::string title, const std::vector<BrowsedNode>& nodes);

  enum class Flow : std::uint8_t { Stay, Leave, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame);
  // The function of the selected box; nullopt: the box of all samples.
  std::optional<FunctionId> function() const { return boxes_[selected_].function; }

 private:
  struct Box {
    std::string name;
    std::optional<FunctionId> function;
    std::size_t depth = 0, parent = 0;
    std::uint64_t begin = 0, weight = 0;  // horizontal position and width, in weight
    std::uint64_t self = 0;               // weight without callees
    std::uint64_t thin = 0;  // weight of callees that are below the graph's limit and have no box
  };
  struct Columns {
    std::size_t begin = 0, end = 0;
  };
  std::size_t neighbour(bool is_right) const;
  std::size_t first_child() const;
  bool is_in_zoom(const Box& box) const;
  Columns columns_of_box(const Box& box, std::size_t width) const;
  std::string status() const;

  std::string title_;
  std::vector<Box> boxes_;  // 0: all samples; a caller is before its callees
  std::size_t selected_ = 0, zoomed_ = 0, top_ = 0;
  std::size_t width_ = 1, height_ = 1;  // of the last drawing
};

}  // namespace tacho::report
