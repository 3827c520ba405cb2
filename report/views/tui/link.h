// Link: the reading process's end of the pipe to the terminal process. WalkSink: the sink of rows and
// annotated code of the interactive view.
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
#include "report/views/tui/time_strip.h"

namespace tacho::report {

// Sends frames to the screen; each is answered by a key.
class Link {
 public:
  // `keys`: Screen::keys(); `kept`: Screen::kept().
  Link(TextOutput& out, int keys, int kept) : out_(out), keys_(keys), kept_(kept) {}

  // Nothing: the screen is gone.
  std::optional<KeyPress> show(Frame frame);
  // A key that was pressed by now, or Key::None; the screen stays as it is.
  std::optional<KeyPress> ask();
  // Before the first frame: sends an empty one to learn the size.
  ScreenSize size();
  // Lets the screen write a file of `parts`. `frame` is what the screen shows meanwhile; `name` as for
  // kept_path(). The path, for a message; nothing: the screen is gone.
  Result<std::optional<std::string>> keep(Frame frame, KeptAs as, const std::string& name,
                                          std::span<const format::Bytes> parts);

 private:
  TextOutput& out_;
  int keys_, kept_;
  ScreenSize size_;
  bool begins_ = true;
};

// Rows and annotated code of one reading.
class WalkSink : public Sink {
 public:
  // `times`: counts when samples were taken, if not null.
  WalkSink(Session& session, const ReportOptions& options, TimeCounts* times = nullptr)
      : rows_(session, options, false), hits_(session.events().size()), times_(times) {
    // Of a pipe the events are not known yet.
    has_branches_ =
        session.layout().is_pipe || std::ranges::any_of(session.events(), [](const format::Event& event) {
          return event.attr.samples(format::abi::kSampleBranchStack);
        });
  }
  MergeBy merge_by() const override { return MergeBy::Address; }
  bool takes_non_samples() const override { return has_branches_ || rows_.takes_non_samples(); }
  Flow on_sample(const ResolvedSample& sample) override {
    if (times_ != nullptr && sample.fields->time != 0) times_->add(sample.fields->time);
    hits_.add(sample);
    if (has_branches_) hits_.add_branches(sample);
    return rows_.on_sample(sample);
  }
  Flow on_non_sample(const NonSampleRecord& other) override { return rows_.on_non_sample(other); }

  ReportSink& rows() { return rows_; }
  const CodeHits& hits() const { return hits_; }

 private:
  ReportSink rows_;
  CodeHits hits_;
  TimeCounts* times_;
  bool has_branches_ = false;
};

}  // namespace tacho::report
