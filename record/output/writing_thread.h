// The thread that compresses and writes, so that a slow disk blocks no other thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "format/base/file.h"
#include "format/base/result.h"
#include "record/output/capture_output.h"
#include "record/output/record_counts.h"
#include "record/output/record_queue.h"

namespace tacho::record {

// Writes the end of the output after the last record.
using Closing = std::function<Result<>(const RecordCounts& counts)>;

// Limits that end a recording before a disk is full. 0: no limit.
struct OutputLimits {
  std::uint64_t most_bytes = 0;  // of the capture, never exceeded
  std::uint64_t least_free = 0;  // free bytes to keep on its file system
  std::string path = {};         // of the capture

  bool operator==(const OutputLimits&) const = default;
};
enum class Limit : std::uint8_t { None, Size, Free };
// Whether less than `least_free` is free.
bool is_disk_short(const OutputLimits& limits);

// `ended_fd` becomes readable shortly before the thread ends: after a failure, after abandon(), or after
// everything is written and closed. The arguments must outlive this.
class WritingThread {
 public:
  WritingThread(CaptureOutput& output, RecordQueue& queue, OutputLimits limits, Closing closing)
      : output_(output), queue_(queue), limits_(std::move(limits)), closing_(std::move(closing)) {}
  WritingThread(const WritingThread&) = delete;
  WritingThread& operator=(const WritingThread&) = delete;
  ~WritingThread();

  // `nice`: of the thread (setpriority(2)); it inherits everything else from the caller.
  Result<> start(int nice = 0);
  int ended_fd() const { return ended_fd_.get(); }
  // Waits for the thread to end. Returns its failure, if any.
  std::optional<Error> join();
  // Counts of whole rounds in the output. After join().
  const RecordCounts& kept() const { return kept_; }
  // For any thread: the number of file steps done, the size of the current file, and a limit that was
  // reached.
  std::uint64_t steps_taken() const { return steps_taken_; }
  std::uint64_t bytes() const { return bytes_; }
  Limit limit() const { return limit_; }
  // The thread hangs in a system call: detaches it. Nothing of it may be used afterwards.
  void leave_behind() { thread_.detach(); }

 private:
  void write_batches();
  Result<> write_everything();
  Result<> write_batch(const Batch& batch);
  Result<> write_within(const Batch& batch);
  Result<> fill(format::Bytes records);
  Result<> take_step(FileStep step);

  CaptureOutput& output_;
  RecordQueue& queue_;
  OutputLimits limits_;
  Closing closing_;
  format::Fd ended_fd_;
  std::optional<Error> failure_;
  RecordCounts kept_, written_;  // in whole rounds; in all
  std::atomic<std::uint64_t> steps_taken_ = 0, bytes_ = 0;
  std::atomic<Limit> limit_ = Limit::None;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace tacho::record
