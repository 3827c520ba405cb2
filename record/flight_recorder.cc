#include "record/flight_recorder.h"

#include <memory>
#include <utility>

#include "format/cursor.h"
#include "format/perf_abi.h"
#include "format/record_view.h"

namespace tacho::record {
namespace {

// Samples, and what else is no sideband: counts, switches.
void append_the_others(format::Bytes records, std::vector<std::byte>& out) {
  while (records.size() >= format::kRecordHeaderSize) {
    format::Cursor header(records);
    header.u32();  // type
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    std::vector<std::byte> sideband;
    append_sideband(records.first(size), sideband);
    if (sideband.empty())
      out.insert(out.end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
    records = records.subspan(size);
  }
}

}  // namespace

FlightRecorder::FlightRecorder(std::string path, std::size_t most_files, LastName last, Beginning now,
                               CaptureSeries::Means means, std::size_t most_log)
    : path_(std::move(path)),
      last_(last),
      most_log_(most_log),
      means_(std::move(means)),
      finished_(path_, most_files) {
  stretches_.push_back({std::move(now.records), {}});
}
FlightRecorder::~FlightRecorder() = default;

Result<> FlightRecorder::write_records(format::Bytes records) {
  append_the_others(records, samples_);
  append_sideband(records, stretches_.back().log);
  if (stretches_.back().log.size() <= most_log_) return Done{};
  auto now = means_.describe();
  if (!now) return std::move(now.error());
  stretches_.push_back({std::move(now->records), {}});
  if (stretches_.size() > 2) stretches_.pop_front();
  return Done{};
}

Result<> FlightRecorder::close_after_failure() {
  return current_ ? current_->close_after_failure() : Result<>(Done{});
}

std::optional<RecordCounts> FlightRecorder::kept(const RecordCounts&) const {
  return current_ || finished_.count() != 0 ? std::optional(finished_counts_) : std::nullopt;
}

std::string FlightRecorder::place(const std::string& path) const {
  if (finished_.count() == 0) return path;
  return has_last_ ? path + " and " + finished_.place() : finished_.place();
}

Result<> FlightRecorder::begin_next() {
  finished_.make_room();
  if (auto done = write_capture(); !done) return done;
  return finished_.add();
}

Result<> FlightRecorder::finish() {
  if (last_ == LastName::PathAndTime) return begin_next();
  has_last_ = true;
  return write_capture();
}

Result<> FlightRecorder::write_capture() {
  auto now = means_.describe();
  if (!now) return std::move(now.error());
  auto opened = means_.open(std::move(now->features));
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  RecordCounts counts;
  count_records(samples_, counts);
  if (auto done = current_->write_plain(stretches_.front().beginning); !done) return done;
  for (const Stretch& stretch : stretches_) {
    if (stretch.log.empty()) continue;
    if (auto done = current_->write_records(stretch.log); !done) return done;
  }
  if (!samples_.empty()) {
    if (auto done = current_->write_records(samples_); !done) return done;
  }
  if (auto done = current_->finish_round(); !done) return done;
  samples_ = {};
  if (auto done = means_.end(counts, *current_); !done) return done;
  written_ += current_->bytes();
  finished_counts_.add(counts);
  current_.reset();
  return Done{};
}

}  // namespace tacho::record
