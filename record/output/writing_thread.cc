#include "record/output/writing_thread.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace tacho::record {

Limit reached_limit(const OutputLimits& limits, std::uint64_t bytes) {
  if (limits.most_bytes != 0 && bytes >= limits.most_bytes) return Limit::Size;
  struct statvfs space {};
  if (limits.least_free == 0 || statvfs(limits.path.c_str(), &space) != 0) return Limit::None;
  const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  return free < limits.least_free ? Limit::Free : Limit::None;
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
      run();
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

void WritingThread::run() {
  try {
    if (auto done = write_everything(); !done) failure_ = std::move(done.error());
  } catch (const std::bad_alloc&) {
    failure_ = Error{"out of memory"};
  }
  if (failure_) queue_.abandon();
  eventfd_write(ended_fd_.get(), 1);
}

Result<> WritingThread::write_everything() {
  while (auto batch = queue_.pop()) {
    if (auto done = write(*batch); !done) return done;
    if (auto done = take_step(batch->step); !done) return done;
    bytes_ = output_.bytes();
    queue_.give_back(std::move(batch->records));
  }
  return queue_.is_abandoned() ? Result<>(Done{}) : closing_(kept_);
}

Result<> WritingThread::write(const Batch& batch) {
  if (!batch.records.empty()) {
    if (auto done = output_.write_records(batch.records); !done) return done;
  }
  if (!batch.ends_round) return Done{};
  if (auto done = output_.finish_round(); !done) return done;
  kept_ = batch.counts;
  if (limit_ == Limit::None) limit_ = reached_limit(limits_, output_.bytes());
  return Done{};
}

Result<> WritingThread::take_step(FileStep step) {
  if (step == FileStep::None) return Done{};
  auto done = step == FileStep::PrepareNext ? output_.prepare_next() : output_.begin_next();
  if (done) ++steps_taken_;
  return done;
}

}  // namespace tacho::record
