// A flame graph as one SVG file: a picture that any viewer shows, with a script for browsers inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/flamegraph/flame_tree.h"

namespace tacho::report {

// By which frames have their colours.
struct FlamePalette {
  std::string_view name, help;
};
std::span<const FlamePalette> flame_palettes();

struct FlameLook {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::string unit;                // of the weights: "ns", "samples"
  std::string_view palette = "safe";
  bool is_inverted = false;  // callers above what they call
  unsigned width = 1200;     // px
  // Whether a name is marked; empty: none is.
  std::function<bool(std::string_view name)> is_marked;
  bool is_difference = false;                     // trees have weights before
  std::string_view was = "before", is = "after";  // what the two weights are called
  FlameWeight all;                                // of the captures of a difference: shares are of these
  bool has_noise = false;                         // nodes have their noise
  // Of a difference by the cost per event (--per): the event's name, and how often it happened after. Weights
  // before are scaled to as many events.
  std::string per;
  double units = 0;
  std::vector<std::string> lines;  // "main.c:12" by number of the frame; shorter, or empty: not known
};

// One graph of a picture.
struct FlamePane {
  std::string heading;  // empty: the only one
  std::string_view kind = "all";
  const FlameTree* tree = nullptr;
  FlameDrawing drawing;
};

// Names may be anything that is safe to print (printable.h); what XML would take for more than text is
// escaped.
void write_flame_svg(TextOutput& out, const FlameFrames& frames, std::span<const FlamePane> panes,
                     const FlameLook& look);

// A colour of the picture with the text on it, for tests: contrast.
struct FlameColour {
  std::string name;            // "safe .u0", "dark .m3"
  std::uint32_t fill, letter;  // 0xrrggbb
};
std::vector<FlameColour> flame_colours();

}  // namespace tacho::report
