// A heat map for terminals, and as JSON for programs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/output/text_output.h"
#include "report/views/heatmap/heat_map.h"
#include "report/views/heatmap/heat_words.h"

namespace tacho::report {

// What a box is: a digit from 1 up, or a block with a shade and a colour. The legend says which counts it
// stands for.
enum class HeatCells : std::uint8_t { Digits, Shades };

// Letters that stand left of the boxes; the others of a line are columns.
constexpr std::size_t kTextMargin = 12;
// `room`: columns that lines have.
void write_heat_text(TextOutput& out, const HeatMap& map, const HeatFacts& facts, HeatCells cells,
                     std::size_t room);

// One object; boxes without samples are left out.
void write_heat_json(TextOutput& out, const HeatMap& map, const HeatFacts& facts);

}  // namespace tacho::report
