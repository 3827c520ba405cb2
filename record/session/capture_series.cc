#include "record/session/capture_series.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "format/base/cursor.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

// Record types that a reader needs of the time before the samples that they explain.
constexpr std::uint32_t kSideband[] = {abi::kRecordMmap,    abi::kRecordComm,     abi::kRecordExit,
                                       abi::kRecordFork,    abi::kRecordMmap2,    abi::kRecordNamespaces,
                                       abi::kRecordKsymbol, abi::kRecordBpfEvent, abi::kRecordCgroup,
                                       abi::kRecordTextPoke};

constexpr std::size_t kMostCarried = std::size_t{1} << 20;
constexpr std::chrono::seconds kFresh{10};

}  // namespace

void append_sideband(format::Bytes records, std::vector<std::byte>& out) {
  while (records.size() >= format::kRecordHeaderSize) {
    format::Cursor header(records);
    const std::uint32_t type = header.u32();
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    if (std::ranges::find(kSideband, type) != std::end(kSideband))
      out.insert(out.end(), records.begin(), records.begin() + static_cast<long>(size));
    records = records.subspan(size);
  }
}

CaptureSeries::CaptureSeries(const std::string& path, std::size_t most_files,
                             std::unique_ptr<CaptureOutput> first, Callbacks callbacks)
    : finished_(path, most_files), current_(std::move(first)), callbacks_(std::move(callbacks)) {}
CaptureSeries::~CaptureSeries() = default;

Result<> CaptureSeries::write_plain(format::Bytes records) { return current_->write_plain(records); }

Result<> CaptureSeries::write_records(format::Bytes records) {
  count_records(records, counts_);
  if (base_) append_sideband(records, carried_);
  return current_->write_records(records);
}

// The sideband has rings of its own, and is not among them.
Result<> CaptureSeries::write_packed(format::Bytes packed, std::uint64_t inflated,
                                     const RecordCounts& counts) {
  counts_.add(counts);
  return current_->write_packed(packed, inflated, counts);
}

Result<> CaptureSeries::finish_round() { return current_->finish_round(); }

Result<> CaptureSeries::close(const format::Features& late) {
  if (auto done = current_->close(late); !done) return done;
  finished_bytes_ += current_->bytes();
  current_.reset();
  return finished_.add();
}

Result<> CaptureSeries::close_after_failure() {
  if (!current_) return Done{};  // what is finished is whole
  return current_->close_after_failure();
}

std::uint64_t CaptureSeries::bytes() const { return current_ ? current_->bytes() : 0; }

Result<> CaptureSeries::prepare_next() {
  const auto now = std::chrono::steady_clock::now();
  if (base_ && carried_.size() <= kMostCarried && now - described_at_ < kFresh) return Done{};
  auto beginning = callbacks_.describe();
  if (!beginning) return std::move(beginning.error());
  base_ = std::move(*beginning);
  carried_ = {};
  described_at_ = now;
  return Done{};
}

Result<> CaptureSeries::begin_next() {
  if (!base_) return Error{"the next file was not prepared"};
  if (auto done = finish(); !done) return done;
  finished_.make_room();
  auto opened = callbacks_.open(base_->features);
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  counts_ = {};
  if (auto done = current_->write_plain(base_->records); !done) return done;
  if (!carried_.empty()) {
    if (auto done = current_->write_records(carried_); !done) return done;
  }
  return current_->finish_round();
}

Result<> CaptureSeries::finish() { return callbacks_.end(counts_, *this); }

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

FlightRecorder::FlightRecorder(std::string path, std::size_t most_files, LastName last, CaptureStart now,
                               CaptureSeries::Callbacks callbacks, std::size_t most_log)
    : path_(std::move(path)),
      last_(last),
      most_log_(most_log),
      callbacks_(std::move(callbacks)),
      finished_(path_, most_files) {
  intervals_.push_back({std::move(now.records), {}});
}
FlightRecorder::~FlightRecorder() = default;

Result<> FlightRecorder::write_records(format::Bytes records) {
  append_the_others(records, samples_);
  append_sideband(records, intervals_.back().log);
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
  auto now = callbacks_.describe();
  if (!now) return std::move(now.error());
  auto opened = callbacks_.open(std::move(now->features));
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  RecordCounts counts;
  count_records(samples_, counts);
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
  finished_counts_.add(counts);
  current_.reset();
  return Done{};
}

}  // namespace tacho::record
