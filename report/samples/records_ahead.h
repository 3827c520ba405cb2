// Ordered records from a thread of their own: it reads and orders them while the caller replays those before.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "report/samples/batch_queue.h"
#include "report/samples/ordered_records.h"

namespace tacho::report {

// It fills one cache line, as lines are what travels between processors.
struct alignas(64) QueuedRecord {
  const std::byte* bytes = nullptr;  // header included
  std::uint64_t offset : 63 = 0;
  std::uint64_t has_start : 1 = 0;
  std::uint64_t time = 0;
  std::uint16_t size = 0;   // bytes: a record's size has 16 bits
  std::uint16_t block = 0;  // what the record lies in: a number in the batch
  std::uint32_t event = 0;
  SampleStart start;
};
static_assert(sizeof(QueuedRecord) == 64);

struct RecordBatch {
  std::vector<QueuedRecord> records;     // at most 65,536, so that a block's number fits
  std::vector<format::BlockRef> blocks;  // what the records lie in
  std::size_t bytes = 0;                 // of the records
  std::uint64_t bytes_read = 0;          // of the capture; 0: no progress to tell

  void add(const OrderedRecord& record);
  bool is_empty() const { return records.empty() && bytes_read == 0; }
  bool has_memory() const { return records.capacity() > 0; }
  void clear();
};

class RecordsAhead : public RecordFeed {
 public:
  // Whether the thread takes samples apart, for a caller who reads no more than SampleStart has: then their
  // bytes need not come to this processor.
  enum class Samples : std::uint8_t { AsTheyAre, TakenApart };
  // Null when the system gives no thread. Until the feed is gone, `records` and all that it uses belong to
  // its thread; but for `header`, which is a file's and does not change.
  static std::unique_ptr<RecordsAhead> start(OrderedRecords& records,
                                             std::shared_ptr<const format::CaptureHeader> header,
                                             Samples samples);
  ~RecordsAhead() override { queue_.stop(); }
  RecordsAhead(const RecordsAhead&) = delete;
  RecordsAhead& operator=(const RecordsAhead&) = delete;

  Step next(OrderedRecord& record) override;
  std::uint64_t bytes_read() const override { return bytes_read_; }
  std::optional<format::RecordView> upcoming(std::size_t ahead, std::uint32_t& event) const override;

 private:
  RecordsAhead(std::shared_ptr<const format::CaptureHeader> header, Samples samples)
      : header_(std::move(header)), samples_(samples) {}
  void read(OrderedRecords& records);
  bool takes_apart(const OrderedRecord& record, format::SampleParser& parser, SampleStart& start) const;

  static constexpr std::size_t kMostBytes = std::size_t{2} << 20;  // of records that wait
  std::shared_ptr<const format::CaptureHeader> header_;
  Samples samples_;
  BatchQueue<RecordBatch> queue_{kMostBytes};
  RecordBatch batch_;     // the caller's
  std::size_t next_ = 0;  // in it
  std::uint64_t bytes_read_ = 0;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace tacho::report
