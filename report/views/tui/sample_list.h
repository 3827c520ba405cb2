// SampleList: one line for each sample (thread, time, CPU, event and decoded fields, as in `tacho script
// --columns`), and a page with its call chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/perf_text/frame_lines.h"
#include "report/samples/session.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/pages.h"
#include "report/views/tui/sample_choice.h"

namespace tacho::report {

class SampleList {
 public:
  // Reads the samples of a choice, which `title` describes. The error is shown in the status line.
  static Result<std::unique_ptr<SampleList>> read(CaptureReadings& readings, const SampleChoice& choice,
                                                  std::string title);

  // A list of the samples that sink() gets from `session`, which must outlive it. Call it when the events are
  // known.
  static Result<std::unique_ptr<SampleList>> collect(Session& session, std::string title);
  ~SampleList();
  Sink& sink();

  enum class Flow : std::uint8_t { Stay, Leave, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame);
  std::size_t size() const { return lines_.size(); }
  void say(std::string message) { message_ = std::move(message); }

 private:
  class Collector;
  // One sample. The text is its cells, separated by tabs.
  struct Line {
    const char* text = nullptr;
    std::uint32_t size = 0;
    const Stack* stack = nullptr;        // null: none
    const Location* location = nullptr;  // null: none
  };
  explicit SampleList(std::string title);
  Result<> begin_list(Session& session);

  std::vector<std::string_view> cells(const Line& line) const;
  std::string row_text(const std::vector<std::string_view>& cells) const;
  TextPage page_of(const Line& line);
  void search(bool begins_here);

  std::optional<Session> owned_;
  Session* session_ = nullptr;  // resolves call chains
  std::unique_ptr<Collector> collector_;
  std::string title_, note_, message_, searched_;
  std::vector<std::string> names_;  // of columns
  std::vector<bool> are_numbers_;
  std::vector<std::size_t> widths_;
  std::vector<std::unique_ptr<char[]>> texts_;
  std::vector<Line> lines_;
  std::optional<FrameLines> frames_;
  std::size_t cursor_ = 0, top_ = 0, height_ = 1, left_ = 0;
  std::optional<TextPage> page_;
  std::optional<Question> question_;
};

}  // namespace tacho::report
