// HistView: the text of `tacho hist` on the screen.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "report/views/hist/hist_sink.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/pages.h"
#include "report/views/tui/sample_choice.h"

namespace tacho::report {

class HistView {
 public:
  // Reads the samples. `readings` must outlive it. The error is shown in the status line.
  static Result<std::unique_ptr<HistView>> read(CaptureReadings& readings, const SampleChoice& choice,
                                                const std::string& event, const std::string& field);

  enum class Flow : std::uint8_t { Stay, Leave, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame);

 private:
  HistView(CaptureReadings& readings, SampleChoice choice)
      : readings_(&readings), choice_(std::move(choice)) {}
  Result<> read_values();
  void ask(bool is_for_rows);
  void answer(const std::string& text);

  CaptureReadings* readings_;
  SampleChoice choice_;
  HistOptions options_;
  std::string rows_text_;  // width of rows as typed; empty: powers of two
  std::optional<TextPage> page_;
  std::optional<Question> question_;
  bool asks_for_rows_ = false;  // otherwise for keys
  std::string message_;
};

}  // namespace tacho::report
