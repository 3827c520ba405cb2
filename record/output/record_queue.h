// Batches of whole records on their way to the writing thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/codec/compression.h"

namespace tacho::record {

// Counts whole records as the kernel wrote them: samples, losses, times.

struct RecordCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;                                       // what LOST records say
  std::uint64_t first_time = ~std::uint64_t{0}, last_time = 0;  // of samples, ns

  std::uint64_t lost_first = ~std::uint64_t{0}, lost_last = 0;  // when LOST records were written, ns
  std::uint64_t sideband = 0;                                   // records about processes and their mappings

  void add(const RecordCounts& more);

  bool operator==(const RecordCounts&) const = default;
};

// Of `records` from `begin` on: removes what the kernel leaves behind the trailers of BPF_EVENT records
// (format::declared_bytes()), so that every reader finds each trailer at its record's end. Bytes that are no
// record end it.
void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer);

// Counts `records`; false when they are not whole records one after another.
bool count_records(format::Bytes records, RecordCounts& counts);

// Batches of records on their way to the writing thread: compressed while they are in the ring
// (RingCompressor), and queued within a bound of bytes.

// Compresses the contents of a ring while they are in the kernel's memory: similar records are compared
// with each other there, and only their differences are copied.

// Bytes that are as they go into the capture: records, packed or plain.
struct CompressedRun {
  std::size_t begin = 0, end = 0;  // where they stand among others
  std::size_t inflated = 0;        // bytes of the records in them
  RecordCounts counts;             // of these alone
};

class RingCompressor {
 public:
  // Less than this in a ring is better compressed together with other rings.
  static constexpr std::size_t kLeast = std::size_t{64} << 10;

  explicit RingCompressor(format::RecordCompressor compressor) : compressor_(std::move(compressor)) {}
  // Nothing where a capture of this zstd level is not packed in this way.
  static Result<std::optional<RingCompressor>> for_level(std::optional<int> level);

  // Appends to `out` the next run of bytes of one look at a ring; a record may start in one run and end in
  // the next. `packed` has which bytes of `out` are compressed already: the others are plain records,
  // because they are not similar enough.
  void add(format::Bytes run, std::vector<std::byte>& out, std::vector<CompressedRun>& packed);
  // A new look starts, whatever became of the one before. The contents of `packed` stay.
  void begin_look(const std::vector<CompressedRun>& packed) {
    missing_ = 0;
    first_ = packed.size();
  }

 private:
  format::Bytes end_record(format::Bytes run, std::vector<std::byte>& out,
                           std::vector<CompressedRun>& packed);

  void add_run(std::size_t begin, std::size_t end, format::Bytes records,
               std::vector<CompressedRun>& packed) const;

  format::RecordCompressor compressor_;
  std::size_t first_ = 0;      // first run of this look
  std::size_t missing_ = 0;    // bytes of the last record in `out`, which come with the next run
  std::size_t cut_at_ = 0;     // where that one begins
  bool is_cut_alone_ = false;  // what stands before it is packed
};

// Queue between the thread that drains the rings and the one that writes: bounded in bytes. When it is full
// the draining thread waits, the rings fill, and the kernel counts what it must drop: no loss goes
// uncounted.

// Action of the writing thread after a batch: the steps from one file to the next.
enum class FileStep : std::uint8_t { None, PrepareNext, BeginNext };

struct Batch {
  std::vector<std::byte> records = {};  // whole records, some of them packed
  bool ends_round = false;              // every ring was looked at since the last round
  RecordCounts counts = {};             // of everything up to its end
  FileStep step = FileStep::None;
  std::vector<CompressedRun> packed = {};  // of `records`, in their order
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
  // One side gave up: no side waits any more, and what is not written yet is dropped.
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
