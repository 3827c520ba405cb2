// A flame graph: its frames, as one tree of stacks, and its drawing as one SVG file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "format/base/result.h"
#include "format/base/worker_pool.h"
#include "report/output/text_output.h"
#include "report/profile/frame_names.h"
#include "report/profile/function_names.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Nothing here is recursive: a stack may be 100,000 frames deep.

// A function as shown; the letter of its kind is its class in the SVG. Texts are safe to print, and live as
// long as the FlameFrames that has them.
struct FlameFrame {
  std::string_view name, module;  // the module's short name; empty: none
  FrameKind kind = FrameKind::User;
  NameId name_id{};
};

// The distinct frames, by number.
class FlameFrames {
 public:
  // Equal frames have equal numbers. `linker_name`: see FunctionNames.
  std::uint32_t number_of(std::string_view name, std::string_view module, FrameKind kind,
                          std::string_view linker_name = {});
  // The number of the same function as a frame of another kind.
  std::uint32_t as_kind(std::uint32_t number, FrameKind kind);
  // After all frames have numbers: overloads get their parameters.
  void show_parameters();
  const FlameFrame& operator[](std::uint32_t number) const { return frames_[number]; }
  std::size_t size() const { return frames_.size(); }
  // By number: the rank of each frame when sorted by name, module and kind.
  std::vector<std::uint32_t> ranks() const;

 private:
  FunctionNames names_{FunctionNames::Texts::Copied};
  TextStore texts_;
  std::map<std::tuple<NameId, std::string_view, FrameKind>, std::uint32_t> numbers_;
  std::vector<FlameFrame> frames_;
};

// Which of the two weights of a difference is the width of a frame.
enum class WidthOf : std::uint8_t { After, Before, Larger, Common };

enum class Side : std::uint8_t { Before, After };

// A stack's weight before and after. A graph of one capture has no weight before.
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
    double width = 0, self_width = 0;  // of `total`, of `self`; see WidthOf
    double noise = 0;                  // of a difference: a smaller change of the share may be chance
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // `all`: the root frame.
  explicit FlameTree(std::uint32_t all) { nodes_.push_back({.frame = all}); }

  // From now on there are at most as many nodes. A stack that would need more ends at the last frame that has
  // a node.
  void limit_nodes(std::size_t most) { most_nodes_ = most; }
  // Root first, by numbers of frames. False: it ends early.
  bool add_stack(std::span<const std::uint32_t> stack, FlameWeight weight);
  // The stacks added from now on belong to one more capture of that side. measure_noise() compares the
  // captures of a side.
  void begin_capture(Side side) { captures_.push_back({side, 0, {}}); }
  // --per: the number of these events in that capture. Without it, shares are compared.
  void count_units(double units) { captures_.back().units = units; }
  // After the last stack: replaces each frame by frames[its number], as if the stacks had been added with the
  // new frames.
  void replace_frames(std::span<const std::uint32_t> frames);
  // After the last stack, before weights are scaled: computes the noise of each node from the differences
  // between captures of one side. False, without noise, if a side has fewer than two captures.
  bool measure_noise();
  // Of a difference, before add_up(): multiplies the weights before by `factor`.
  void scale_before(double factor);
  FlameWeight sum() const;  // of all stacks, also before add_up()
  // After the last stack: totals and widths.
  void add_up(WidthOf width);
  // The frames that only the weight before has, with their callers, as a tree that is added up.
  FlameTree gone() const;

  void name_root(std::uint32_t frame) { nodes_.front().frame = frame; }

  // Parents come before their children; the first is the root.
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
  // Its node, made if it is new and `may_be_made`; else kNone.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame, bool may_be_made = true);
  std::vector<double> shares_of(const CaptureWeights& capture, double cost_of_unit) const;  // by node

  std::vector<Node> nodes_;
  std::size_t most_nodes_ = kNone;
  std::vector<CaptureWeights> captures_;
  IndexTable<> children_;
  // Nodes of the last stack, root first: most stacks share a prefix with it.
  std::vector<std::uint32_t> path_;
};

// The drawn frames: callers before callees, siblings by name.
struct DrawnFrame {
  std::uint32_t node = 0, row = 0;
  double x = 0;  // from the left, in the unit of the tree's widths
};
// A frame that is too thin to be drawn, for the script of the picture, which searches it and draws it when it
// is zoomed into.
struct ThinFrame {
  std::uint32_t node = 0;
  std::uint32_t caller = 0;  // its number: the drawn frames come first, then the thin ones
};
struct FlameDrawing {
  std::vector<DrawnFrame> frames;
  std::vector<ThinFrame> thin;  // callers before callees, siblings by name
  // The callees of a drawn frame that are too thin to be drawn: the grey part beside the drawn ones.
  struct Gap {
    std::uint32_t row = 0;
    double x = 0, width = 0;
    std::size_t count = 0;  // without what these call
  };
  std::vector<Gap> gaps;
  std::uint32_t rows = 0;
  std::size_t left_out = 0;   // number of frames that are neither drawn nor in `thin`
  double left_out_width = 0;  // of them, with their callees
};
// The maxima of a drawing. Frames are drawn if they are at least as wide as `least` of the whole, and gaps as
// `gap`.
struct FlameLimits {
  double least = 0;
  std::size_t drawn = 0, thin = 0;  // numbers of frames: of more the widest are chosen
  double gap = 0;
};
// Chooses among the frames with a width.
FlameDrawing choose_frames(const FlameTree& tree, const FlameFrames& frames, const FlameLimits& limits);

struct FlameLook {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::string_view palette = "safe";
  bool is_inverted = false;  // callers above their callees
  unsigned width = 1200;     // px
  double least = 0;          // px; frames below this width are not drawn
  // Whether a name is marked. An empty function: no name is.
  std::function<bool(std::string_view name)> is_marked;
  bool is_difference = false;  // trees have weights before
  std::string_view before_name = "before", after_name = "after";
  bool has_noise = false;  // nodes have their noise
  // With --per: the event's name, and the number of events after. Weights before are scaled to that number.
  std::string per;
  double units = 0;
  std::vector<std::string> lines;  // "main.c:12" by number of the frame; shorter, or empty: not known
};

// One graph of a picture.
struct FlamePane {
  std::string heading;            // empty: the only one
  std::string_view kind = "all";  // or "gone"
  std::string events{};           // their names
  std::string unit{};             // of the weights: "ns", "samples"
  FlameWeight all{};              // of a difference: the totals, of which shares are taken
  const FlameTree* tree = nullptr;
  FlameDrawing drawing;
};

// Writes a flame graph as one SVG file: a picture that any viewer shows, with a script for browsers inside.
// Names are safe to print (printable.h); characters of XML markup are escaped. Workers of the pool compress
// the thin frames.
Result<> write_flame_svg(TextOutput& out, const FlameFrames& frames, std::span<const FlamePane> panes,
                         const FlameLook& look, format::WorkerPool& pool);

}  // namespace tacho::report
