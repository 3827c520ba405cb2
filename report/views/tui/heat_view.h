// A heat map on the screen: the map of `tacho heatmap`, with a cursor on its boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "report/views/heatmap/heat_forms.h"
#include "report/views/heatmap/heat_map.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/pages.h"
#include "report/views/tui/sample_choice.h"

namespace tacho::report {

class HeatView {
 public:
  // Reads the samples. An error is a line to show: what is missing, or why the capture cannot be read.
  static Result<std::unique_ptr<HeatView>> read(CaptureReadings& readings, const SampleChoice& choice,
                                                const HeatRequest& request);

  // What the caller does after a key. Chosen: counts only box() in the rows. Samples: lists the samples of
  // box(). Explain: shows explanation(). Unknown: not a key of this view.
  enum class Flow : std::uint8_t { Stay, Leave, Chosen, Samples, Explain, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame);
  // The boxes from the mark to the cursor; without a mark the box at the cursor.
  BoxChoice box() const;
  // What is more frequent in that box than outside: the text of `tacho heatmap --box`.
  Result<TextPage> explanation(CaptureReadings& readings) const;

 private:
  HeatView(SampleChoice choice, HeatRequest request)
      : choice_(std::move(choice)), request_(std::move(request)) {}
  struct Cell {
    std::size_t column = 0, row = 0;
    bool operator==(const Cell&) const = default;
  };
  void fit(ScreenSize size);
  std::uint64_t samples_in(Cell first, Cell last) const;
  std::pair<Cell, Cell> corners() const;  // of the box: its lowest and its highest
  void move(std::ptrdiff_t columns, std::ptrdiff_t rows);

  SampleChoice choice_;
  HeatRequest request_;
  HeatFacts facts_;
  std::string note_;
  std::optional<HeatGrid> grid_;
  HeatMap map_;  // as wide and high as the screen allows
  ScreenSize fitted_{0, 0};
  Cell cursor_;
  std::optional<Cell> mark_;
  // Of the last drawing: rows scrolled away above, lines of the map, characters of a column.
  std::size_t top_ = 0, height_ = 1, wide_ = 1;
};

}  // namespace tacho::report
