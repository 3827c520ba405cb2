// Link: how the reading process sends frames to the process that owns the terminal and gets keys from it.
// ViewSink: the sink of the interactive view, for rows and annotated code.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "format/base/result.h"
#include "format/records/perf_abi.h"
#include "report/profile/annotated_code.h"
#include "report/views/report/report_sink.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/screen.h"
#include "report/views/tui/time_strip.h"

namespace tacho::report {

// Sends frames to the screen, and gets a key for each.
class Link {
 public:
  Link(TextOutput& out, const Screen& screen)
      : out_(out), keys_(screen.keys()), saved_file_(screen.saved_file()) {}

  // nullopt: the terminal process has exited.
  std::optional<KeyPress> show(Frame frame);
  // The next key without waiting, or Key::None; draws nothing.
  std::optional<KeyPress> ask();
  // The screen's size. Before the first frame it sends an empty one to get it.
  ScreenSize size();
  // Has the terminal process write a file with the bytes of `parts`; `frame` is shown meanwhile, `name` as
  // for saved_path(). Returns the path; nullopt: the terminal process has exited.
  Result<std::optional<std::string>> save(Frame frame, SavedAs as, const std::string& name,
                                          std::span<const format::Bytes> parts);

 private:
  TextOutput& out_;
  int keys_, saved_file_;
  ScreenSize size_;
  bool begins_ = true;
};

// Sink for rows and annotated code.
class ViewSink : public Sink {
 public:
  // `times`: counts samples over time; may be null.
  ViewSink(Session& session, const ReportOptions& options, TimeCounts* times = nullptr)
      : rows_(session, options, false), hits_(session.events().size()), times_(times) {
    // In a pipe, events come after the start.
    has_branches_ =
        session.layout().is_pipe || std::ranges::any_of(session.events(), [](const format::Event& event) {
          return event.attr.samples(format::abi::kSampleBranchStack);
        });
  }
  bool takes_non_samples() const override { return has_branches_ || rows_.takes_non_samples(); }
  Flow on_sample(const ResolvedSample& sample) override {
    if (times_ != nullptr && sample.fields->time != 0) times_->add_time(sample.fields->time);
    hits_.add_sample(sample);
    if (has_branches_) hits_.add_branches(sample);
    return rows_.on_sample(sample);
  }
  Flow on_non_sample(const NonSampleRecord& other) override { return rows_.on_non_sample(other); }

  ReportSink& rows_sink() { return rows_; }
  const CodeHits& hits() const { return hits_; }

 private:
  ReportSink rows_;
  CodeHits hits_;
  TimeCounts* times_;
  bool has_branches_ = false;
};

}  // namespace tacho::report
