#include "record/session/flight_recorder.h"

#include <algorithm>
#include <utility>

#include "record/session/sideband.h"

namespace tacho::record {

FlightRecorder::FlightRecorder(std::string path, std::size_t most_files, LastName last, CaptureStart now,
                               CaptureSeries::Callbacks callbacks, std::size_t most_log)
    : FileSeries(path, most_files),
      path_(std::move(path)),
      last_(last),
      most_log_(most_log),
      callbacks_(std::move(callbacks)) {
  intervals_.push_back({std::move(now.records), {}});
}
FlightRecorder::~FlightRecorder() = default;

Result<> FlightRecorder::write_records(format::Bytes records) {
  append_sideband(records, intervals_.back().log, &samples_);
  if (intervals_.back().log.size() <= most_log_) return Done{};
  auto now = callbacks_.describe();
  if (!now) return std::move(now.error());
  intervals_.push_back({std::move(now->records), {}});
  if (intervals_.size() > 2) intervals_.pop_front();
  return Done{};
}

Result<> FlightRecorder::close_after_failure() {
  return current_ ? current_->close_after_failure() : Result<>(Done{});
}

std::optional<RecordCounts> FlightRecorder::kept(const RecordCounts&) const {
  return current_ || finished_.count() != 0 ? std::optional(finished_counts_) : std::nullopt;
}

std::vector<std::string> FlightRecorder::files() const {
  auto names = finished_.names();
  if (has_last_) names.push_back(path_);
  return names;
}

std::string FlightRecorder::place(const std::string& path) const {
  if (finished_.count() == 0) return path;
  return has_last_ ? path + " and " + finished_.place() : finished_.place();
}

Result<> FlightRecorder::begin_next() {
  finished_.make_room();
  if (auto done = write_capture(); !done) return done;
  return finished_.add_file();
}

Result<> FlightRecorder::finish() {
  if (last_ == LastName::PathAndTime) return begin_next();
  has_last_ = true;
  return write_capture();
}

Result<> FlightRecorder::write_capture() {
  auto now = callbacks_.describe();
  if (!now) return std::move(now.error());
  auto opened = callbacks_.open(std::move(now->features));
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  RecordCounts counts;
  count_records(samples_, counts);
  counts.lost_first = std::min(counts.lost_first, std::exchange(gap_begin_, ~std::uint64_t{0}));
  if (auto done = current_->write_plain(intervals_.front().beginning); !done) return done;
  for (const Interval& interval : intervals_) {
    if (interval.log.empty()) continue;
    if (auto done = current_->write_records(interval.log); !done) return done;
  }
  if (!samples_.empty()) {
    if (auto done = current_->write_records(samples_); !done) return done;
  }
  if (auto done = current_->finish_round(); !done) return done;
  samples_ = {};
  if (auto done = callbacks_.end(counts, *current_); !done) return done;
  written_ += current_->bytes();
  finished_counts_.add_counts(counts);
  current_.reset();
  return Done{};
}

}  // namespace tacho::record
