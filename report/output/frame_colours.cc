#include "report/output/frame_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace tacho::report {
namespace {

constexpr FramePalette kPalettes[] = {
    {"safe", "kind of code, in colours that differ for readers with red-green colour blindness"},
    {"warm", "kind of code, in the colours of the first flame graphs"},
    {"module", "module"},
    {"wait", "kind of code, cold colours for waits and warm ones for wakers"},
    {"change",
     "change of the share of all, with --base, or of the cost per event, with --per: orange is more, blue "
     "is less"},
};

// Kinds of frames in the order of the legend, with their colour in each palette of kinds.
struct KindRow {
  char kind;
  std::string_view word;
  std::uint32_t safe, warm, wait;
};
constexpr KindRow kKinds[] = {
    {'u', "user", 0xf2b45a, 0xf2905c, 0x9fd0f0},
    {'i', "inlined", 0xf3e173, 0xf5c56b, 0xc9e6f8},
    {'k', "kernel", 0x74b9ea, 0xe8b04a, 0x7db2e6},
    {'j', "JIT", 0x5ec9a5, 0x8fd18a, 0x8fd8d0},
    {'b', "BPF", 0xe0a3c6, 0xe7a6d8, 0xb7b3ee},
    {'n', "without a symbol", 0xc9c9c9, 0xd3c3b3, 0xc5ccd6},
    {'v', "waker", 0xb9a7e6, 0xb9a7e6, 0xf2b45a},
    {'t', "thread", 0xe4dfd6, 0xe9dfcf, 0xdfe4ea},
    {'a', "", 0xe4dfd6, 0xe9dfcf, 0xdfe4ea},
    {'c', "", 0xd5cfa8, 0xd5cfa8, 0xb8cbd0},  // a module whose functions the script joined
    {'o', "on the CPU", 0xe8835f, 0xe8835f, 0xe8835f},
    {'r', "runnable", 0xd8c63c, 0xd8c63c, 0xd8c63c},
    {'w', "waiting", 0x93a7cf, 0x93a7cf, 0x93a7cf},
};
constexpr std::uint32_t kModules[] = {0xf2b45a, 0x74b9ea, 0x5ec9a5, 0xf3e173, 0xe0a3c6,
                                      0xb9a7e6, 0xd3b48c, 0x9ad1e0, 0xc6d67a, 0xf0a08c};
// A change: about equal, and more than before or less, from little to much, which stands out most from the
// ground. Readers with red-green colour blindness can tell orange from blue.
struct ChangeRow {
  std::string_view selector;
  std::uint32_t light, dark;
};
constexpr ChangeRow kChanges[] = {
    {".d0", 0xdcdcdc, 0x3d3d3d}, {".p1", 0xfbe3c4, 0x5a4426}, {".p2", 0xf9cd93, 0x744d1e},
    {".p3", 0xf3ae57, 0x8c560f}, {".p4", 0xe58a1f, 0xa06009}, {".q1", 0xd3e6f5, 0x2c4a63},
    {".q2", 0xaed2ee, 0x285a82}, {".q3", 0x7db5e2, 0x20669a}, {".q4", 0x4c97d3, 0x1a72b4},
};
constexpr std::uint32_t kLetters = 0x1b1b1b, kLettersDark = 0xf5f5f5;
constexpr std::uint32_t kMatch = 0x9c179e, kMatchDark = 0xf0a6f5;  // with the letters of the other mode
constexpr std::uint32_t kMark = 0x33404d;                          // with bright letters in both modes
constexpr double kShades[] = {1, 0.94, 0.88};
constexpr std::uint32_t kPageLettersDark = 0xf0f0f0;  // page.css
constexpr double kLeastContrast = 4.55;

std::uint32_t scaled_colour(std::uint32_t colour, double factor) {
  const auto part = [&](int shift) {
    return static_cast<std::uint32_t>(std::lround(static_cast<double>(colour >> shift & 255) * factor))
           << shift;
  };
  return part(16) | part(8) | part(0);
}

double luminance(std::uint32_t colour) {
  const auto part = [&](int shift) {
    const double value = static_cast<double>(colour >> shift & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0);
}

// For a dark ground: as bright as letters allow (contrast of WCAG 2).
double dark_factor(std::uint32_t colour) {
  double factor = 1;
  while ((luminance(kPageLettersDark) + 0.05) / (luminance(scaled_colour(colour, factor)) + 0.05) <
         kLeastContrast)
    factor -= 0.01;
  return factor;
}

// The same as in browser/frame_looks.js.
unsigned hash_of(std::string_view text) {
  unsigned hash = 5;
  for (const char c : text.substr(0, 200)) hash = (hash * 31 + static_cast<std::uint8_t>(c)) % 1'000'003;
  return hash;
}

}  // namespace

std::span<const FramePalette> frame_palettes() { return kPalettes; }

std::vector<FrameKindName> frame_kinds() {
  std::vector<FrameKindName> kinds;
  for (const KindRow& row : kKinds) kinds.push_back({row.kind, row.word});
  return kinds;
}

std::vector<FrameFill> frame_fills() {
  std::vector<FrameFill> all;
  const auto add = [&](std::string selector, std::uint32_t colour, double shade = 1) {
    all.push_back({std::move(selector), scaled_colour(colour, shade),
                   scaled_colour(colour, dark_factor(colour) * shade)});
  };
  constexpr std::pair<std::string_view, std::uint32_t KindRow::*> kOfKinds[] = {
      {"safe", &KindRow::safe}, {"warm", &KindRow::warm}, {"wait", &KindRow::wait}};
  for (const auto& [palette, colour] : kOfKinds) {
    for (const KindRow& row : kKinds)
      for (std::size_t shade = 0; shade < std::size(kShades); ++shade)
        add(fmt::format(".{} .{}{}", palette, row.kind, shade), row.*colour, kShades[shade]);
  }
  const std::uint32_t root = std::ranges::find(kKinds, 'a', &KindRow::kind)->safe;
  add(".module .a0", root);
  add(".change .a0", root);
  for (std::size_t i = 0; i < std::size(kModules); ++i) add(fmt::format(".m{}", i), kModules[i]);
  for (const ChangeRow& row : kChanges) all.push_back({std::string(row.selector), row.light, row.dark});
  return all;
}

std::string frame_class(char kind, std::string_view name) {
  constexpr std::string_view kOneShade = "xaorw";  // a mark, everything, states of threads
  const bool has_shades = kOneShade.find(kind) == std::string_view::npos;
  return fmt::format("{}{}", kind, has_shades ? hash_of(name) % std::size(kShades) : 0);
}

std::vector<std::string_view> ranked_modules(const std::map<std::string_view, double>& weights) {
  std::vector<std::pair<double, std::string_view>> heaviest;
  for (const auto& [module, weight] : weights)
    if (!module.empty()) heaviest.emplace_back(-weight, module);
  std::ranges::sort(heaviest);
  std::vector<std::string_view> modules;
  for (const auto& [weight, module] : heaviest) modules.push_back(module);
  return modules;
}

std::string module_class(std::size_t rank) { return fmt::format("m{}", rank % std::size(kModules)); }

std::string change_class(double before, double after, double noise) {
  const double size = std::abs(after - before);
  const int step = size < std::max(0.0005, noise) ? 0
                   : size < 0.002                 ? 1
                   : size < 0.01                  ? 2
                   : size < 0.05                  ? 3
                                                  : 4;
  if (step == 0) return "d0";
  return fmt::format("{}{}", after > before ? 'p' : 'q', step);
}

std::vector<FrameColour> frame_colours() {
  std::vector<FrameColour> colours;
  for (const FrameFill& fill : frame_fills()) {
    colours.push_back({fill.selector, fill.light, kLetters});
    colours.push_back({"dark " + fill.selector, fill.dark, kLettersDark});
  }
  colours.push_back({"match", kMatch, kLettersDark});
  colours.push_back({"dark match", kMatchDark, kLetters});
  colours.push_back({"mark", kMark, kLettersDark});
  return colours;
}

}  // namespace tacho::report
