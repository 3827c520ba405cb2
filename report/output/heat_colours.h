// The colours of boxes in heat maps: pictures have them as a style sheet, pages as data.
#pragma once

#include <cstdint>
#include <span>

namespace tacho::report {

// From few samples to many, on a light ground and on a dark one: 0xrrggbb.
struct HeatColours {
  std::span<const std::uint32_t> light, dark;  // of the same size
};
HeatColours heat_colours();

}  // namespace tacho::report
