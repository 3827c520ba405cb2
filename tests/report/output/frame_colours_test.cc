#include "report/output/frame_colours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

TEST(FrameColours, AStrongerChangeStandsOutMoreFromTheGround) {
  constexpr std::uint32_t kPaper = 0xffffff, kDarkPaper = 0x16181c;
  double light[2] = {}, dark[2] = {};  // the last contrast of more and of less
  for (const FrameFill& fill : frame_fills()) {
    const auto contrast = [](std::uint32_t colour, std::uint32_t ground) {
      const double a = luminance(colour), b = luminance(ground);
      return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
    };
    const double on_light = contrast(fill.light, kPaper), on_dark = contrast(fill.dark, kDarkPaper);
    if (fill.selector == ".d0") dark[0] = dark[1] = on_dark;
    if (fill.selector.starts_with(".p") || fill.selector.starts_with(".q")) {
      const std::size_t less = fill.selector[1] == 'q' ? 1 : 0;
      EXPECT_GT(on_light, light[less]) << fill.selector;
      EXPECT_GT(on_dark, dark[less]) << fill.selector;
      light[less] = on_light;
      dark[less] = on_dark;
    }
  }
  EXPECT_GT(std::min(dark[0], dark[1]), 3.0);
}

TEST(FrameColours, OnADarkGroundAreAsBrightAsLettersAllow) {
  int seen = 0;
  for (const FrameFill& fill : frame_fills()) {
    if (fill.selector != ".safe .u0" && fill.selector != ".safe .k0" && fill.selector != ".m0") continue;
    ++seen;
    EXPECT_NEAR((luminance(0xf0f0f0) + 0.05) / (luminance(fill.dark) + 0.05), 4.6, 0.1) << fill.selector;
  }
  EXPECT_EQ(seen, 3);
}

TEST(FrameColours, TheHeaviestModulesHaveDifferentColours) {
  const std::vector<std::string_view> ranked =
      ranked_modules({{"", 9}, {"a", 1}, {"b", 3}, {"c", 1}, {"d", 0}});
  EXPECT_EQ(ranked, (std::vector<std::string_view>{"b", "a", "c", "d"}));
  std::set<std::string> looks;
  for (std::size_t rank = 0; rank < 10; ++rank) looks.insert(module_class(rank));
  EXPECT_EQ(looks.size(), 10u);
}

}  // namespace
}  // namespace tacho::report
