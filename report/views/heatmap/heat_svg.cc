#include "report/views/heatmap/heat_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "report/output/svg_text.h"

namespace tacho::report {

// The script of the picture, as text (heatmap.js, put in by cmake/embed_text.cmake).
extern const std::string_view kHeatmapScript;

namespace {

constexpr int kLeft = 86, kGap = 10, kLabelRoom = 90;              // px; heatmap.js has the same
constexpr double kPlotHeight = 512, kLeastRow = 8, kMostRow = 26;  // px
constexpr std::uint64_t kLabelSteps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};

// From few samples to many: YlGnBu of ColorBrewer (Brewer 2002), with steps between. The order is one of
// lightness, and all of them differ for readers who do not see red and green. Few samples are near the
// ground, but not so near that one is not seen.
constexpr std::uint32_t kLight[] = {0x9fd9b9, 0x7fcdbb, 0x5fc0c0, 0x41b6c4, 0x2fa3c2,
                                    0x1d91c0, 0x2078b4, 0x225ea8, 0x253494, 0x0b1f5c};
constexpr std::uint32_t kDark[] = {0x2a4a9c, 0x225ea8, 0x2078b4, 0x1d91c0, 0x2fa3c2,
                                   0x41b6c4, 0x60c1c0, 0x8ed3b9, 0xc7e9b4, 0xffffd9};
constexpr std::size_t kCount = std::size(kLight);
static_assert(std::size(kDark) == kCount);

std::string style() {
  std::string css =
      "svg{overflow-anchor:none}#bg{fill:#fff}text{fill:#1b1b1b;direction:ltr;unicode-bidi:bidi-override;"
      "white-space:pre}"
      ".title{font-size:17px}.ground{fill:#f3f3f1}.boxes{cursor:pointer;shape-rendering:crispEdges}"
      ".axis text{pointer-events:none}.axis path{stroke:#767676}"
      "rect.chosen{fill:none;stroke:#c4006a;stroke-width:3;pointer-events:none}.live .head{overflow:visible}"
      "foreignObject{pointer-events:none}.headbox,.foot,.help{pointer-events:auto}"
      ".headbox,.tip,.foot,.help{font:12px system-ui,sans-serif;color:#1b1b1b;overflow-wrap:anywhere}"
      ".headbox{padding:8px 10px 2px;background:#fff}"
      ".headbox h1{font-size:17px;font-weight:600;margin:0 0 4px}.headbox p{margin:0 0 4px}"
      ".legend span{margin-right:10px;white-space:nowrap}.legend svg{vertical-align:-2px}"
      ".tip,.foot,.help{background:#fff;border:1px solid #767676;border-radius:4px;padding:5px 8px}"
      ".foot{border-width:1px 0 0;border-radius:0;max-height:40vh;overflow:auto}.foot:empty{display:none}"
      ".foot code{user-select:all;font:12px ui-monospace,monospace}"
      ".help{margin:20px auto;padding:4px 16px;max-width:480px}"
      ".help dl{display:grid;grid-template-columns:auto 1fr;gap:4px 14px}.help dt{font-weight:600}"
      ".help dd{margin:0}svg:focus,svg:focus-visible{outline:none}";
  for (std::size_t i = 0; i < kCount; ++i) css += fmt::format(".h{}{{fill:#{:06x}}}", i, kLight[i]);
  css +=
      "@media(prefers-color-scheme:dark){#bg{fill:#16181c}text{fill:#f5f5f5}.ground{fill:#23262c}"
      "rect.chosen{stroke:#ff9ad5}.headbox,.tip,.foot,.help{color:#f5f5f5}.headbox{background:#16181c}"
      ".tip,.foot,.help{background:#22252b}";
  for (std::size_t i = 0; i < kCount; ++i) css += fmt::format(".h{}{{fill:#{:06x}}}", i, kDark[i]);
  return css + "}";
}

// Writes one picture.
class Picture {
 public:
  Picture(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width)
      : out_(out),
        map_(map),
        facts_(facts),
        width_(width),
        classes_(count_classes(map, facts, kCount)),
        row_(std::clamp(kPlotHeight / static_cast<double>(std::max<std::size_t>(map.rows.size(), 1)),
                        kLeastRow, kMostRow)) {}

  void write() {
    const double top = 44 + 16.0 * static_cast<double>(facts_.notes.size() + 2);
    const double high = row_ * static_cast<double>(map_.rows.size());
    begin(top + high + 44);
    head();
    if (!map_.is_empty()) plot(top, high);
    text("<script><![CDATA[\n");
    text(kHeatmapScript);
    text("]]></script>\n</svg>\n");
  }

 private:
  void text(std::string_view more) {
    out_.text(more);
    out_.line_end();
  }
  double wide() const { return width_ - kLeft - 2.0 * kGap; }
  double column() const { return wide() / static_cast<double>(map_.columns); }
  // Classes are spread over all colours, however few there are.
  std::size_t colour_of(std::size_t number) const {
    return classes_.size() < 2 ? kCount - 1 : number * (kCount - 1) / (classes_.size() - 1);
  }

  void begin(double height) {
    text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text(fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} "
        "{1:.0f}\" font-family=\"system-ui,Verdana,sans-serif\" font-size=\"12\" data-begin=\"{2}\" "
        "data-interval=\"{3}\" data-columns=\"{4}\" data-total=\"{5}\" data-row=\"{6}\" data-offset=\"{7}\" "
        "data-name=\"{8}\" data-command=\"{9}\">\n",
        width_, height, map_.begin, map_.interval, map_.columns, map_.total, row_, facts_.period != 0 ? 1 : 0,
        xml_text(facts_.name), xml_text(facts_.command)));
    text("<title>" + xml_text(facts_.title) + "</title>\n<style>" + style() + "</style>\n");
    text("<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
  }

  void head() {
    const double room = width_ - 2.0 * kGap;
    text(fmt::format("<g class=\"head\"><text x=\"10\" y=\"24\" class=\"title\" data-text=\"{}\">{}</text>\n",
                     xml_text(facts_.title), xml_text(fitting_text(facts_.title, room * 12 / 17))));
    double y = 44;
    for (const std::string& note : facts_.notes) {
      text(fmt::format("<text x=\"10\" y=\"{:.0f}\" class=\"note\" data-text=\"{}\">{}</text>\n", y,
                       xml_text(note), xml_text(fitting_text(note, room))));
      y += 16;
    }
    double x = kGap;
    text(fmt::format("<text x=\"10\" y=\"{:.0f}\">samples in a box:</text>\n", y));
    x += 17 * kSvgLetter;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const std::uint64_t last = i + 1 < classes_.size() ? classes_[i + 1] - 1 : map_.most;
      std::string counts = with_commas(static_cast<double>(classes_[i]));
      if (last > classes_[i]) counts += "–" + with_commas(static_cast<double>(last));
      text(fmt::format(
          "<g class=\"key\"><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" class=\"h{}\"/>"
          "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>\n",
          x, y - 10, colour_of(i), x + 17, y, counts));
      x += 17 + kSvgLetter * static_cast<double>(counts.size()) + 10;
    }
    text("</g>\n");
  }

  void plot(double top, double high) {
    text("<metadata class=\"rows\">");
    for (std::size_t row = 0; row < map_.rows.size(); ++row)
      text(fmt::format("{}{} {} {}", row == 0 ? "" : "\n", map_.rows[row].low, map_.rows[row].high,
                       xml_text(values_text(map_.rows[row].low, map_.rows[row].high, facts_))));
    text("</metadata>\n");
    text(fmt::format(
        "<g class=\"plot\" transform=\"translate({} {:.0f})\">\n<rect class=\"ground\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/>\n",
        kLeft, top, wide(), high));
    boxes();
    value_labels(high);
    time_labels(high);
    text("</g>\n");
  }

  // In units of columns and rows, so that the script need change nothing but the scale.
  void boxes() {
    text(fmt::format("<g class=\"boxes\" transform=\"scale({:.5f} {:.5f})\">\n", column(), row_));
    const std::size_t rows = map_.rows.size();
    for (std::size_t column = 0; column < map_.columns; ++column) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::uint64_t count = map_.at(column, row);
        if (count == 0) continue;
        const HeatBox box = box_of(map_, column, row);
        text(fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"1\" height=\"1\" class=\"h{}\" n=\"{}\"><title>{} sample{}, {}, "
            "--box {}</title></rect>\n",
            column, rows - 1 - row, colour_of(class_of(count, classes_)), count,
            with_commas(static_cast<double>(count)), count == 1 ? "" : "s", xml_text(box_text(box, facts_)),
            box_words(box, facts_)));
      }
    }
    text("</g>\n");
  }

  // The least value of a row stands at its lower edge.
  void value_labels(double high) {
    text("<g class=\"axis values\">\n");
    const auto step = static_cast<std::size_t>(std::ceil(15 / row_));
    for (std::size_t row = 0; row < map_.rows.size(); row += step) {
      const double y = high - row_ * static_cast<double>(row);
      text(fmt::format(
          "<path d=\"M-5 {0:.1f}h5\"/><text x=\"-8\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text>\n", y,
          y + 4, xml_text(fitting_text(amount_text(map_.rows[row].low, facts_.unit), kLeft - 6))));
    }
    text("</g>\n");
  }

  void time_labels(double high) {
    text("<g class=\"axis times\">\n");
    const auto* const step = std::ranges::find_if(kLabelSteps, [&](std::uint64_t columns) {
      return static_cast<double>(columns) * column() >= kLabelRoom;
    });
    const std::uint64_t every = map_.interval * (step == std::end(kLabelSteps) ? 1000 : *step);
    for (std::size_t number = 0; number < map_.columns; ++number) {
      const std::uint64_t time = map_.begin_of(number);
      const double x = column() * static_cast<double>(number);
      if (time % every != 0 || x + kLabelRoom > wide() + kGap) continue;
      text(fmt::format("<path d=\"M{0:.1f} {1:.1f}v6\"/><text x=\"{0:.1f}\" y=\"{2:.1f}\">{3} s</text>\n", x,
                       high, high + 20, seconds_text(time)));
    }
    text("</g>\n");
  }

  TextOutput& out_;
  const HeatMap& map_;
  const HeatFacts& facts_;
  unsigned width_;
  std::vector<std::uint64_t> classes_;
  double row_;  // px
};

}  // namespace

HeatColours heat_colours() {
  return {{std::begin(kLight), std::end(kLight)}, {std::begin(kDark), std::end(kDark)}};
}

void write_heat_svg(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width) {
  Picture(out, map, facts, width).write();
}

}  // namespace tacho::report
