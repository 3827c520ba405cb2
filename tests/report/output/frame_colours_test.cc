#include "report/output/frame_colours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tacho::report {
namespace {

// Contrast of WCAG 2: (L1 + 0.05) / (L2 + 0.05) of the relative luminances.
double luminance(std::uint32_t colour) {
  const auto part = [&](int shift) {
    const double value = static_cast<double>(colour >> shift & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0);
}

TEST(FrameColours, LettersStandOutFromEveryColour) {
  const auto colours = frame_colours();
  EXPECT_GT(colours.size(), 100u);
  for (const FrameColour& colour : colours) {
    const double a = luminance(colour.fill), b = luminance(colour.letter);
    EXPECT_GE((std::max(a, b) + 0.05) / (std::min(a, b) + 0.05), 4.5) << colour.name;
  }
}

}  // namespace
}  // namespace tacho::report
