// A heat map as one SVG file with tooltips, and a script for browsers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/heatmap/heat_map.h"
#include "report/views/heatmap/heat_text.h"

namespace tacho::report {

// `width`: px. Texts of `facts` are safe to print (printable.h).
void write_heat_svg(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width);

// The colours of boxes from few samples to many, on a light ground and on a dark one, for tests.
struct HeatColours {
  std::vector<std::uint32_t> light, dark;  // 0xrrggbb
};
HeatColours heat_colours();

}  // namespace tacho::report
