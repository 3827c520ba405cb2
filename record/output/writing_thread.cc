#include "record/output/writing_thread.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "format/records/record_view.h"
#include "record/output/file_series.h"

namespace tacho::record {

namespace {

// The smallest piece into which records are split to fill the remaining space.
constexpr std::size_t kLeastPiece = 1024;

// The size of the whole records at the start of `records`, at most `most`.
std::size_t whole_records(format::Bytes records, std::size_t most) {
  std::size_t end = 0;
  while (end + format::kRecordHeaderSize <= records.size()) {
    format::Cursor header(records.subspan(end));
    header.skip(6);
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || end + size > most) break;
    end += size;
  }
  return end;
}

}  // namespace

bool is_disk_short(const OutputLimits& limits) {
  struct statvfs space {};
  if (limits.least_free == 0 || statvfs(limits.path.c_str(), &space) != 0) return false;
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize < limits.least_free;
}

WritingThread::~WritingThread() {
  queue_.abandon();
  if (thread_.joinable()) thread_.join();
}

Result<> WritingThread::start(int nice) {
  ended_fd_ = format::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended_fd_) return system_error("eventfd", errno);
  try {
    thread_ = std::thread([this, nice] {
      (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
      write_batches();
    });
  } catch (const std::system_error& refused) {
    return system_error("a thread that writes the capture", refused.code().value());
  }
  return Done{};
}

std::optional<Error> WritingThread::join() {
  thread_.join();
  return std::move(failure_);
}

void WritingThread::write_batches() {
  try {
    if (auto done = write_everything(); !done) failure_ = std::move(done.error());
  } catch (const std::bad_alloc&) {
    failure_ = Error{"out of memory"};
  } catch (const std::exception& bug) {
    failure_ = Error{bug.what()};
  }
  if (failure_) queue_.abandon();
  eventfd_write(ended_fd_.get(), 1);
}

Result<> WritingThread::write_everything() {
  while (auto batch = queue_.pop_batch()) {
    if (auto done = write_batch(*batch); !done) return done;
    if (auto done = take_step(batch->step); !done) return done;
    bytes_ = output_.bytes();
    queue_.give_back(std::move(batch->records));
  }
  return queue_.is_abandoned() ? Result<>(Done{}) : closing_(kept_);
}

Result<> WritingThread::write_batch(const Batch& batch) {
  if (limit_ == Limit::Size) return Done{};  // there is no room for later batches
  output_.note_gap(batch.gap_begin);
  auto written = limits_.most_bytes != 0 ? write_within(batch) : output_.write_records(batch.records);
  if (!written || limit_ == Limit::Size || !batch.ends_round) return written;
  if (auto done = output_.finish_round(); !done) return done;
  kept_ = batch.counts;
  if (limit_ == Limit::None && is_disk_short(limits_)) limit_ = Limit::Free;
  return Done{};
}

// A batch that does not fit may have some first records that do; the last round ends with those.
Result<> WritingThread::write_within(const Batch& batch) {
  if (batch.records.empty()) return Done{};
  const auto has_room = output_.write_within(batch.records, limits_.most_bytes);
  if (!has_room) return has_room.error();
  if (*has_room) {
    written_ = batch.counts;
    return Done{};
  }
  if (auto done = fill(batch.records); !done) return done;
  if (auto done = output_.finish_round(); !done) return done;
  kept_ = written_;
  limit_ = Limit::Size;
  return Done{};
}

Result<> WritingThread::fill(format::Bytes records) {
  for (std::size_t most = records.size() / 2; most >= kLeastPiece;) {
    const std::size_t piece = whole_records(records, most);
    const auto has_room =
        piece == 0 ? Result<bool>(false) : output_.write_within(records.first(piece), limits_.most_bytes);
    if (!has_room) return has_room.error();
    if (*has_room) {
      count_records(records.first(piece), written_);
      records = records.subspan(piece);
    } else {
      most /= 2;
    }
  }
  return Done{};
}

Result<> WritingThread::take_step(FileStep step) {
  if (step == FileStep::None) return Done{};
  Result<> done = Done{};
  if (FileSeries* const series = output_.series())
    done = step == FileStep::PrepareNext ? series->prepare_next() : series->begin_next();
  if (done) ++steps_taken_;
  return done;
}

}  // namespace tacho::record
