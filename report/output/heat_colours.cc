#include "report/output/heat_colours.h"

namespace tacho::report {
namespace {

// The hues of YlGnBu of ColorBrewer (Brewer 2002) in even steps of lightness, which readers with red-green
// colour blindness see. The colour of one sample has a contrast of 3 to its ground, the least that WCAG has
// for graphics: one looks for outliers.
constexpr std::uint32_t kHeatLight[] = {0x2f9a86, 0x1e84b4, 0x2073ae, 0x2262a9, 0x2351a2,
                                        0x24409a, 0x22308c, 0x1a2672, 0x121c5b, 0x0a1245};
constexpr std::uint32_t kHeatDark[] = {0x3f74d0, 0x238cc3, 0x2a9ec1, 0x3aafc3, 0x58bfc1,
                                       0x7fcdbb, 0xa1dabe, 0xc0e7c7, 0xe0f3d0, 0xffffd9};

}  // namespace

HeatColours heat_colours() { return {kHeatLight, kHeatDark}; }

}  // namespace tacho::report
