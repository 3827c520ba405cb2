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

// Counts of whole records as the kernel wrote them.
struct RecordCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;                                       // sum of LOST records
  std::uint64_t first_time = ~std::uint64_t{0}, last_time = 0;  // of samples, ns

  // Of losses: the time of the sample before the first one, and of the last LOST record, ns.
  std::uint64_t lost_first = ~std::uint64_t{0}, lost_last = 0;
  std::uint64_t sideband = 0;  // records about processes and their mappings

  void add(const RecordCounts& more);

  bool operator==(const RecordCounts&) const = default;
};

// For `records` from `begin` on: removes the bytes that the kernel leaves after the trailers of BPF_EVENT
// records (format::declared_bytes()), so that each trailer is at its record's end. Stops at bytes that are no
// record.
void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer);

// Counts `records`; false when they are not whole records one after another. They may be of several rings, so
// `lost_first` is at most the time of a LOST record (RingGaps of record/kernel knows the sample before it).
bool count_records(format::Bytes records, RecordCounts& counts);

// A compressed part of a batch, as it goes into the capture.
struct CompressedRun {
  std::size_t begin = 0, end = 0;  // offsets in the batch
  std::size_t inflated = 0;        // bytes of the records in them
  RecordCounts counts;             // of these records only
};

// Compresses the contents of a ring while they are in the kernel's memory: similar records are compared
// there, and only their differences are copied.
class RingCompressor {
 public:
  // With less than this in a ring, several rings are better compressed together.
  static constexpr std::size_t kLeast = std::size_t{64} << 10;

  explicit RingCompressor(format::RecordCompressor compressor) : compressor_(std::move(compressor)) {}
  // nullopt: captures of this zstd level are not compressed this way.
  static Result<std::optional<RingCompressor>> for_level(std::optional<int> level);

  // Appends a run of bytes of one pass over a ring to `out`; a record may begin in one run and end in the
  // next. `packed` lists which bytes of `out` are compressed; the others are plain records, which are not
  // similar enough.
  void add(format::Bytes run, std::vector<std::byte>& out, std::vector<CompressedRun>& packed);
  // Begins another pass, whatever happened to the last one. The contents of `packed` stay.
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
  std::size_t first_ = 0;      // first run of this pass
  std::size_t missing_ = 0;    // the missing bytes of the last record in `out`, which come with the next run
  std::size_t cut_at_ = 0;     // the start of that record
  bool is_cut_alone_ = false;  // the bytes before it are compressed
};

// Actions of the writing thread after a batch: the steps from one file to the next.
enum class FileStep : std::uint8_t { None, PrepareNext, BeginNext };

struct Batch {
  std::vector<std::byte> records = {};  // whole records, some of them compressed
  bool ends_round = false;              // all rings were read since the last round
  RecordCounts counts = {};             // of everything up to the batch's end
  // The time of the sample before the first gap that a LOST record of the batch reports; ~0: there is none.
  std::uint64_t gap_begin = ~std::uint64_t{0};
  FileStep step = FileStep::None;
  std::vector<CompressedRun> packed = {};  // of `records`, in their order
};

// A queue between the thread that drains the rings and the one that writes, with a limit in bytes. If it is
// full, the draining thread waits, the rings fill up, and the kernel counts the samples that it drops.
class RecordQueue {
 public:
  explicit RecordQueue(std::size_t limit) : limit_(limit) {}

  // Waits for space up to `patience`, so that the caller can do other things meanwhile. False: no space, and
  // `batch` is unchanged. A batch above the limit is accepted by an empty queue. After abandon() batches are
  // dropped, and the result is true.
  bool push(Batch& batch, std::chrono::milliseconds patience);
  // Waits for a batch; nullopt: the queue is closed and empty, or abandoned.
  std::optional<Batch> pop();
  // No more batches will come.
  void close();
  // One side failed: no side waits any longer, and unwritten batches are dropped.
  void abandon();
  bool is_abandoned();
  // The size of the batches that wait.
  std::size_t bytes();

  // Buffers of written batches are used again, so that steady recording allocates nothing.
  void give_back(std::vector<std::byte> buffer);
  std::vector<std::byte> spare_buffer();
  // Frees the buffers of written batches when memory is short.
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
