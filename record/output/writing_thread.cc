#include "record/output/writing_thread.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace tacho::record {

WritingThread::~WritingThread() {
  queue_.abandon();
  if (thread_.joinable()) thread_.join();
}

Result<> WritingThread::start() {
  ended_fd_ = format::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended_fd_) return system_error("eventfd", errno);
  try {
    thread_ = std::thread([this] { run(); });
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
  return Done{};
}

}  // namespace tacho::record
