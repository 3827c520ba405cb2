// Link: the reading process's end of the pipe to the terminal process. WalkSink: the sink of rows and
// annotated code of the interactive view.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/profile/annotated_code.h"
#include "report/views/report/report_sink.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/time_strip.h"

namespace tacho::report {

// Sends frames to the screen; each is answered by a key.
class Link {
 public:
  Link(TextOutput& out, int keys) : out_(out), keys_(keys) {}

  // Nothing: the screen is gone.
  std::optional<KeyPress> show(Frame frame) {
    frame.begins = std::exchange(begins_, false);
    out_.text(encode(frame));
    out_.flush();
    if (out_.is_done()) return std::nullopt;
    std::array<std::byte, kKeyBytes> bytes{};
    std::size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t more = ::read(keys_, bytes.data() + got, bytes.size() - got);
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return std::nullopt;
      got += static_cast<std::size_t>(more);
    }
    auto press = decode_key(bytes);
    if (!press) return std::nullopt;
    size_ = press->size;
    return *press;
  }
  // A key that was pressed by now, or Key::None; the screen stays as it is.
  std::optional<KeyPress> ask() {
    Frame frame(size_);
    frame.rows.clear();
    frame.waits = frame.draws = false;
    return show(std::move(frame));
  }
  // Before the first frame: sends an empty one to learn the size.
  ScreenSize size() {
    if (begins_) {
      Frame first(size_);
      first.waits = false;
      (void)show(std::move(first));
    }
    return size_;
  }

 private:
  TextOutput& out_;
  int keys_;
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
  Places places() const override { return Places::Addresses; }
  bool takes_others() const override { return has_branches_ || rows_.takes_others(); }
  Flow on_sample(const ResolvedSample& sample) override {
    if (times_ != nullptr && sample.raw->time != 0) times_->add(sample.raw->time);
    hits_.add(sample);
    if (has_branches_) hits_.add_branches(sample);
    return rows_.on_sample(sample);
  }
  Flow on_other(const OtherEvent& other) override { return rows_.on_other(other); }

  ReportSink& rows() { return rows_; }
  const CodeHits& hits() const { return hits_; }

 private:
  ReportSink rows_;
  CodeHits hits_;
  TimeCounts* times_;
  bool has_branches_ = false;
};

}  // namespace tacho::report
