// Between the thread that drains the rings and the one that writes: bounded in bytes. When it is full the
// draining thread waits, the rings fill, and the kernel counts what it must drop: no loss goes uncounted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "record/output/record_walk.h"
#include "record/output/run_packer.h"

namespace tacho::record {

// What the writing thread does after a batch: the steps from one file to the next.
enum class FileStep : std::uint8_t { None, PrepareNext, BeginNext };

struct Batch {
  std::vector<std::byte> records = {};  // whole records, some of them packed
  bool ends_round = false;              // every ring was looked at since the last round
  RecordCounts counts = {};             // of everything up to its end
  FileStep step = FileStep::None;
  std::vector<PackedStretch> packed = {};  // of `records`, in their order
};

class RecordQueue {
 public:
  explicit RecordQueue(std::size_t limit) : limit_(limit) {}

  // Waits for room, no longer than `patience`, so that the caller can look at other things meanwhile: false
  // when there was none, and `batch` is as before. A batch larger than the limit goes in when the queue is
  // empty. After abandon() it is dropped, which counts as taken.
  bool push(Batch& batch, std::chrono::milliseconds patience);
  // Waits for a batch; nothing when the queue is closed and empty, or abandoned.
  std::optional<Batch> pop();
  // No more batches will come.
  void close();
  // One side gave up: nobody waits any more, and what is not written yet is dropped.
  void abandon();
  bool is_abandoned();
  // Of the batches that wait to be written.
  std::size_t bytes();

  // Memory of written batches goes round, so that steady recording allocates nothing.
  void give_back(std::vector<std::byte> buffer);
  std::vector<std::byte> spare_buffer();
  // Gives the memory of written batches back to the system, which is short of it.
  void free_spares();

 private:
  std::mutex mutex_;
  std::condition_variable has_room_, has_batch_;
  std::deque<Batch> batches_;
  std::vector<std::vector<std::byte>> spare_;
  std::size_t bytes_ = 0;
  std::size_t limit_;
  bool closed_ = false, abandoned_ = false;
};

}  // namespace tacho::record
