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

// What the colours of frames show.
struct FlamePalette {
  std::string_view name, help;
};
std::span<const FlamePalette> flame_palettes();

struct FlameLook {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::string unit;                // of the weights: "ns", "samples"
  std::string_view palette = "safe";
  bool is_inverted = false;  // callers above their callees
  unsigned width = 1200;     // px
  // Whether a name is marked; empty: none is.
  std::function<bool(std::string_view name)> is_marked;
  bool is_difference = false;                     // trees have weights before
  std::string_view was = "before", is = "after";  // names of the two weights
  FlameWeight all;                                // of a difference: the totals, of which shares are taken
  bool has_noise = false;                         // nodes have their noise
  // With --per: the event's name, and the number of events after. Weights before are scaled to that number.
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

// Names are safe to print (printable.h); characters of XML markup are escaped.
void write_flame_svg(TextOutput& out, const FlameFrames& frames, std::span<const FlamePane> panes,
                     const FlameLook& look);

// A colour of the picture with the text on it, for tests: contrast.
struct FlameColour {
  std::string name;            // "safe .u0", "dark .m3"
  std::uint32_t fill, letter;  // 0xrrggbb
};
std::vector<FlameColour> flame_colours();

}  // namespace tacho::report
