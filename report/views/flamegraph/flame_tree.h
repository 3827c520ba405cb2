// The frames of a flame graph: stacks as one tree, and which of its frames are drawn.
//
// Everything here goes from one frame to the next without recursion: a stack may be 100,000 frames deep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/output/text_output.h"
#include "report/samples/index_table.h"

namespace tacho::report {

// What a frame's code is; the letter is its class in the picture.
enum class FrameKind : char {
  All = 'a',      // the frame below all others
  Group = 't',    // a thread, a processor, a control group: no code
  User = 'u',     // a function of a file
  Kernel = 'k',   // of the kernel or one of its modules
  Inlined = 'i',  // a call that was inlined
  Jit = 'j',      // made at run time
  Bpf = 'b',      // a BPF program
  Unnamed = 'n',  // code without a symbol
  Waker = 'v',    // a frame of who ended a wait
  Mark = 'x',     // between a wait and who ended it
  // What a thread did: the frames below its stacks in a graph of all its time.
  OnCpu = 'o',
  Runnable = 'r',
  Waiting = 'w',
};

// A function as it is shown. Texts are safe to print, and live as long as the FlameFrames that has them.
struct FlameFrame {
  std::string_view name, module;  // the module's short name; empty: none
  FrameKind kind = FrameKind::User;
};

// The distinct frames, by number.
class FlameFrames {
 public:
  // Equal frames have equal numbers.
  std::uint32_t number_of(std::string_view name, std::string_view module, FrameKind kind);
  const FlameFrame& operator[](std::uint32_t number) const { return frames_[number]; }
  std::size_t size() const { return frames_.size(); }
  // By number: the place of each among all, by name, module and kind.
  std::vector<std::uint32_t> ranks() const;

 private:
  TextStore texts_;
  std::map<std::tuple<std::string_view, std::string_view, FrameKind>, std::uint32_t> numbers_;
  std::vector<FlameFrame> frames_;
};

// Which of two weights of a difference is as wide as the frame.
enum class WidthOf : std::uint8_t { After, Before, Larger, Common };

enum class Side : std::uint8_t { Before, After };

// A stack's weight in what was before, and in what is looked at. A graph of one capture has no weight before.
struct FlameWeight {
  double before = 0, after = 0;
  FlameWeight& operator+=(const FlameWeight& other) {
    before += other.before;
    after += other.after;
    return *this;
  }
};

class FlameTree {
 public:
  struct Node {
    std::uint32_t parent = kNone, frame = 0;
    FlameWeight self, total;
    double width = 0, own_width = 0;  // of both; own_width: of self
    double noise = 0;  // of a difference: a change of the share that is no larger may be chance
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // `all`: the frame that stands for everything.
  explicit FlameTree(std::uint32_t all) { nodes_.push_back({kNone, all, {}, {}, 0, 0, 0}); }

  // Root first, by numbers of frames.
  void add(std::span<const std::uint32_t> stack, FlameWeight weight);
  // Stacks that are added from now on are of one more capture of that side, which measure_noise() compares
  // with the side's others.
  void begin_capture(Side side) { captures_.push_back({side, 0, {}}); }
  // How often what costs are divided by (--per) happened in that capture. Without it shares are compared.
  void count_units(double units) { captures_.back().units = units; }
  // After the last stack, before weights are scaled: the noise of each node, from how much the captures of
  // each side differ among themselves. False, and no noise, with fewer than two on either side.
  bool measure_noise();
  // Of a difference, before add_up(): weights before times `factor`.
  void scale_before(double factor);
  FlameWeight sum() const;  // of all stacks, also before add_up()
  // After the last stack: totals and widths.
  void add_up(WidthOf width);
  // The frames below which nothing is left, of what was before, as a tree that is added up: of their callers
  // only what they need to stand on.
  FlameTree gone() const;

  // A node stands behind its parent; the first is everything.
  const std::vector<Node>& nodes() const { return nodes_; }
  const FlameWeight& total() const { return nodes_.front().total; }
  double width() const { return nodes_.front().width; }

 private:
  // One of several captures of a side: its own weights, by node.
  struct CaptureWeights {
    Side side = Side::After;
    double units = 0;
    std::vector<double> own;
  };
  std::vector<double> shares_of(const CaptureWeights& capture, double cost_of_unit) const;  // by node

  std::vector<Node> nodes_;
  std::vector<CaptureWeights> captures_;
  IndexTable children_;
  std::vector<std::uint32_t> path_;  // nodes of the last stack, root first: most begin as the one before
};

// What is drawn: callers before what they call, and frames beside each other by their names.
struct DrawnFrame {
  std::uint32_t node = 0, row = 0;
  double x = 0;  // from the left, in the unit of the tree's widths
};
struct FlameDrawing {
  std::vector<DrawnFrame> frames;
  std::size_t left_out = 0;  // frames that are too thin
  std::uint32_t rows = 0;
};
// At most `most` frames, and none that is thinner than `least` of the whole, or has no width.
FlameDrawing choose_frames(const FlameTree& tree, const FlameFrames& frames, double least, std::size_t most);

}  // namespace tacho::report
