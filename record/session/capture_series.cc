#include "record/session/capture_series.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "record/session/sideband.h"

namespace tacho::record {
namespace {

constexpr std::size_t kMostCarried = std::size_t{1} << 20;
constexpr std::chrono::seconds kFresh{10};

}  // namespace

CaptureSeries::CaptureSeries(const std::string& path, std::size_t most_files,
                             std::unique_ptr<CaptureOutput> first, Callbacks callbacks)
    : FileSeries(path, most_files), current_(std::move(first)), callbacks_(std::move(callbacks)) {}
CaptureSeries::~CaptureSeries() = default;

Result<> CaptureSeries::write_plain(format::Bytes records) { return current_->write_plain(records); }

Result<> CaptureSeries::write_records(format::Bytes records) {
  count_records(records, counts_);
  if (next_.processes) append_sideband(records, next_.carried);
  if (description_.valid()) append_sideband(records, newer_.carried);
  return current_->write_records(records);
}

Result<> CaptureSeries::finish_round() { return current_->finish_round(); }

Result<> CaptureSeries::close_capture(const format::Features& late) {
  if (auto done = current_->close_capture(late); !done) return done;
  finished_bytes_ += current_->bytes();
  current_.reset();
  return finished_.add_file();
}

Result<> CaptureSeries::close_after_failure() {
  if (!current_) return Done{};  // finished files are closed
  return current_->close_after_failure();
}

std::uint64_t CaptureSeries::bytes() const { return current_ ? current_->bytes() : 0; }

Result<> CaptureSeries::prepare_next() {
  const auto now = std::chrono::steady_clock::now();
  if (description_.valid()) return Done{};
  if (next_.processes && next_.carried.size() <= kMostCarried && now - next_.began < kFresh) return Done{};
  newer_ = {.processes = {}, .carried = {}, .began = now};
  try {
    description_ = std::async(std::launch::async, [this]() -> Result<CaptureStart> {
      Result<CaptureStart> processes = Error{"out of memory"};
      try {
        processes = callbacks_.describe();
      } catch (const std::bad_alloc&) {
        // The error says so.
      } catch (const std::exception& bug) {
        processes = Error{bug.what()};
      }
      is_prepared_ = true;
      return processes;
    });
  } catch (const std::system_error& refused) {
    return system_error("a thread that reads the running processes", refused.code().value());
  }
  return Done{};
}

// Takes the description when it is complete; waits for it if there is no earlier one.
Result<> CaptureSeries::take_description() {
  if (!description_.valid())
    return next_.processes ? Result<>(Done{}) : Error{"the next file was not prepared"};
  const bool is_complete = description_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (next_.processes && !is_complete) return Done{};
  auto processes = description_.get();
  if (!processes) return std::move(processes.error());
  newer_.processes = std::move(*processes);
  next_ = std::exchange(newer_, {});
  return Done{};
}

Result<> CaptureSeries::begin_next() {
  if (auto done = take_description(); !done) return done;
  if (auto done = finish(); !done) return done;
  finished_.make_room();
  auto opened = callbacks_.open(next_.processes->features);
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  counts_ = {};
  if (auto done = current_->write_plain(next_.processes->records); !done) return done;
  if (!next_.carried.empty()) {
    if (auto done = current_->write_records(next_.carried); !done) return done;
  }
  return current_->finish_round();
}

Result<> CaptureSeries::finish() { return callbacks_.end(counts_, *this); }

}  // namespace tacho::record
