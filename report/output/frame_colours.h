// The colours of frames in flame graphs: pictures have them as a style sheet, pages as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::report {

// What the colours of frames show.
struct FramePalette {
  std::string_view name, help;
};
std::span<const FramePalette> frame_palettes();

// The kinds of frames that have a colour of their own, in the order of the legend.
struct FrameKindName {
  char letter = '\0';      // of FrameKind
  std::string_view words;  // empty: not in the legend
};
std::vector<FrameKindName> frame_kinds();

// The fill of a class of frames. `selector`: ".safe .u0" in one palette, ".m3" in all.
struct FrameFill {
  std::string selector;
  std::uint32_t light = 0, dark = 0;  // 0xrrggbb
};
std::vector<FrameFill> frame_fills();

// The modules of a picture, the heaviest first.
std::vector<std::string_view> ranked_modules(const std::map<std::string_view, double>& weights);

// The class of a frame: by its kind and name; by the rank of its module, so that the first ones in a legend
// differ; by the change of its percentage, where a change below `noise` may be chance. browser/frame_looks.js
// has the same.
std::string frame_class(char kind, std::string_view name);
std::string module_class(std::size_t rank);
std::string change_class(double before, double after, double noise);

// A colour with the text on it, for tests: contrast.
struct FrameColour {
  std::string name;                    // "safe .u0", "dark .m3"
  std::uint32_t fill = 0, letter = 0;  // 0xrrggbb
};
std::vector<FrameColour> frame_colours();

}  // namespace tacho::report
