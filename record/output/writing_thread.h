// The thread that compresses and writes, so that a disk that hangs holds nobody else.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "format/file.h"
#include "format/result.h"
#include "record/output/capture_output.h"
#include "record/output/record_queue.h"
#include "record/output/record_walk.h"

namespace tacho::record {

// What is written when the last record is.
using Closing = std::function<Result<>(const RecordCounts& counts)>;

// It says through `ended_fd` that it is about to end: after its first failure, when the queue was given up,
// or with all written and closed. What it is made of must outlive it.
class WritingThread {
 public:
  WritingThread(CaptureOutput& output, RecordQueue& queue, Closing closing)
      : output_(output), queue_(queue), closing_(std::move(closing)) {}
  WritingThread(const WritingThread&) = delete;
  WritingThread& operator=(const WritingThread&) = delete;
  ~WritingThread();

  Result<> start();
  int ended_fd() const { return ended_fd_.get(); }
  // Waits for the end of the thread; the failure, if there was one.
  std::optional<Error> join();
  // What stands in whole rounds of the output. After join().
  const RecordCounts& kept() const { return kept_; }
  // The thread hangs in a call that does not return: never again is anything of it to be touched.
  void leave_behind() { thread_.detach(); }

 private:
  void run();
  Result<> write_everything();
  Result<> write(const Batch& batch);

  CaptureOutput& output_;
  RecordQueue& queue_;
  Closing closing_;
  format::Fd ended_fd_;
  std::optional<Error> failure_;
  RecordCounts kept_;
  std::thread thread_;  // last: it uses what stands above
};

}  // namespace tacho::record
