#include "report/samples/records_ahead.h"

#include <algorithm>
#include <system_error>

namespace tacho::report {
namespace {

constexpr std::uint64_t kLargestOffset = ~std::uint64_t{0} >> 1;  // QueuedRecord has 63 bits for it

}  // namespace

void RecordBatch::add(const OrderedRecord& record) {
  // Records of a few processors take turns, so the block is one of the last.
  auto known = std::find(blocks.rbegin(), blocks.rend(), *record.block);
  if (known == blocks.rend()) {
    blocks.push_back(*record.block);
    known = blocks.rbegin();
  }
  const format::Bytes all = record.view.bytes;
  QueuedRecord& queued = records.emplace_back();
  queued.bytes = all.data();
  queued.offset = record.view.offset & kLargestOffset;
  queued.time = record.time;
  queued.size = static_cast<std::uint16_t>(all.size());
  queued.block = static_cast<std::uint16_t>(blocks.rend() - known - 1);
  queued.event = record.event;
  queued.has_start = record.start != nullptr;
  if (record.start != nullptr) queued.start = *record.start;
  bytes += all.size();
}

void RecordBatch::clear() {
  records.clear();
  blocks.clear();
  bytes = 0;
  bytes_read = 0;
}

std::unique_ptr<RecordsAhead> RecordsAhead::start(OrderedRecords& records,
                                                  std::shared_ptr<const format::CaptureHeader> header,
                                                  Samples samples) {
  std::unique_ptr<RecordsAhead> feed(new RecordsAhead(std::move(header), samples));
  try {
    feed->thread_ = std::jthread([&records, to = feed.get()] { to->read(records); });
  } catch (const std::system_error&) {
    return nullptr;
  }
  return feed;
}

// False when the record is no sample, or one that has more to it (a time that orders nothing, say): whoever
// replays it finds out what.
bool RecordsAhead::takes_apart(const OrderedRecord& record, format::SampleParser& parser,
                               SampleStart& start) const {
  if (samples_ == Samples::AsTheyAre || record.view.type != format::abi::kRecordSample) return false;
  const format::EventAttr& attr = header_->events[record.event].attr;
  if (attr.samples(format::abi::kSampleRead)) return false;
  const format::Sample* const sample = parser.parse(record.view, attr);
  if (sample == nullptr || sample->unread != 0 || sample->time != record.time) return false;
  start = {sample->ip, sample->period, sample->pid, sample->tid, sample->cpu, sample->misc};
  return true;
}

// On the thread.
void RecordsAhead::read(OrderedRecords& records) {
  constexpr std::size_t kMostRecords = 1024, kMostBatchBytes = std::size_t{256} << 10;
  RecordBatch batch;
  OrderedRecord record;
  format::SampleParser parser;
  SampleStart start;
  for (;;) {
    const Step step = records.next(record);
    if (step == Step::End) break;
    if (step == Step::Record) {
      if (takes_apart(record, parser, start)) record.start = &start;
      batch.add(record);
    }
    const bool is_full = batch.records.size() >= kMostRecords || batch.bytes >= kMostBatchBytes;
    if (step == Step::Record && !is_full) continue;
    if (step == Step::Progress) batch.bytes_read = records.bytes_read();
    if (!queue_.put(batch)) break;
  }
  queue_.put(batch);
  queue_.end();
}

std::optional<format::RecordView> RecordsAhead::upcoming(std::size_t ahead, std::uint32_t& event) const {
  const std::size_t at = next_ + ahead - 1;
  if (at >= batch_.records.size() || batch_.records[at].has_start) return std::nullopt;
  const QueuedRecord& queued = batch_.records[at];
  event = queued.event;
  return format::whole_record({queued.bytes, queued.size}, header_->layout.order);
}

RecordFeed::Step RecordsAhead::next(OrderedRecord& record) {
  constexpr std::size_t kPrefetched = 10;  // records: the other thread touched them last
  while (next_ == batch_.records.size()) {
    if (batch_.bytes_read != 0) {
      bytes_read_ = std::exchange(batch_.bytes_read, 0);
      return Step::Progress;
    }
    next_ = 0;
    if (!queue_.take(batch_)) return Step::End;
  }
  if (next_ + kPrefetched < batch_.records.size() && !batch_.records[next_ + kPrefetched].has_start)
    __builtin_prefetch(batch_.records[next_ + kPrefetched].bytes);
  const QueuedRecord& queued = batch_.records[next_++];
  const format::Bytes bytes(queued.bytes, queued.size);
  record.start = queued.has_start ? &queued.start : nullptr;
  if (record.start != nullptr) {
    record.view.type = format::abi::kRecordSample;
    record.view.misc = record.start->misc;
    record.view.bytes = bytes;
    record.view.order = header_->layout.order;
  } else {
    record.view = format::whole_record(bytes, header_->layout.order);
  }
  record.view.offset = queued.offset;
  record.time = queued.time;
  record.event = queued.event;
  record.block = &batch_.blocks[queued.block];
  return Step::Record;
}

}  // namespace tacho::report
