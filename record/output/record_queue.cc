#include "record/output/record_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

struct Header {
  std::uint32_t type;
  std::uint16_t misc, size;
};
static_assert(sizeof(Header) == format::kRecordHeaderSize);

// Every planned event has IDENTIFIER, IP, TID and TIME, in this order.
constexpr std::size_t kTimeOffset = 3 * sizeof(std::uint64_t);

// Called for every sample, so it reads without a cursor.
void count_sample(format::Bytes body, RecordCounts& counts) {
  ++counts.samples;
  std::uint64_t time;
  if (body.size() < kTimeOffset + sizeof time) return;
  std::memcpy(&time, body.data() + kTimeOffset, sizeof time);
  counts.first_time = std::min(counts.first_time, time);
  counts.last_time = std::max(counts.last_time, time);
}

// After the count comes the trailer of every record: TID, TIME, ...
void count_loss(format::Cursor body, RecordCounts& counts) {
  body.u64();  // id
  counts.lost += body.u64();
  body.u64();  // thread
  const std::uint64_t time = body.u64();
  if (body.failed()) return;
  counts.lost_first = std::min(counts.lost_first, time);
  counts.lost_last = std::max(counts.lost_last, time);
}

// The missing bytes of the last record; `last`: its start. Records and rings are multiples of 8 bytes, so a
// header is never cut.
std::size_t bytes_missing(format::Bytes records, std::size_t& last) {
  for (last = 0; records.size() - last >= format::kRecordHeaderSize;) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + last + 6, sizeof size);
    if (size < format::kRecordHeaderSize) return 0;  // no record, which count_records() reports
    if (size > records.size() - last) return size - (records.size() - last);
    last += size;
  }
  return 0;
}

}  // namespace

void RecordCounts::add(const RecordCounts& more) {
  samples += more.samples;
  lost += more.lost;
  first_time = std::min(first_time, more.first_time);
  last_time = std::max(last_time, more.last_time);
  lost_first = std::min(lost_first, more.lost_first);
  lost_last = std::max(lost_last, more.lost_last);
  sideband += more.sideband;
}

void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer) {
  std::size_t to = begin;
  Header header;
  for (std::size_t at = begin; at < records.size(); at += header.size) {
    const format::Bytes rest = format::Bytes(records).subspan(at);
    if (rest.size() >= sizeof header) std::memcpy(&header, rest.data(), sizeof header);
    if (rest.size() < sizeof header || header.size < sizeof header || header.size > rest.size()) {
      std::memmove(records.data() + to, rest.data(), rest.size());
      to += rest.size();
      break;
    }
    Header kept = header;
    if (header.type == abi::kRecordKsymbol || header.type == abi::kRecordBpfEvent)
      kept.size = static_cast<std::uint16_t>(
          format::declared_bytes(format::whole_record(rest.first(header.size), std::endian::native), trailer)
              .size());
    if (to != at) std::memmove(records.data() + to, rest.data(), kept.size);
    std::memcpy(records.data() + to, &kept, sizeof kept);
    to += kept.size;
  }
  records.resize(to);
}

bool count_records(format::Bytes records, RecordCounts& counts) {
  Header header;
  RecordCounts sum = counts;
  bool is_whole = true;
  for (std::size_t at = 0; at < records.size(); at += header.size) {
    const std::size_t left = records.size() - at;
    is_whole = left >= sizeof header;
    if (!is_whole) break;
    std::memcpy(&header, records.data() + at, sizeof header);
    is_whole = header.size >= sizeof header && header.size <= left;
    if (!is_whole) break;
    const auto body = records.subspan(at + sizeof header, header.size - sizeof header);
    if (header.type == abi::kRecordSample) count_sample(body, sum);
    if (header.type == abi::kRecordLost) count_loss(format::Cursor(body), sum);
    if (header.type == abi::kRecordMmap2 || header.type == abi::kRecordMmap ||
        header.type == abi::kRecordComm || header.type == abi::kRecordExit)
      ++sum.sideband;
  }
  counts = sum;
  return is_whole;
}

Result<std::optional<RingCompressor>> RingCompressor::for_level(std::optional<int> level) {
  if (level != format::RecordCompressor::kQuickLevel) return std::optional<RingCompressor>();
  auto compressor = format::RecordCompressor::create(*level);
  if (!compressor) return std::move(compressor.error());
  return std::optional(RingCompressor(std::move(*compressor)));
}

void RingCompressor::add(format::Bytes run, std::vector<std::byte>& out, std::vector<CompressedRun>& packed) {
  run = end_record(run, out, packed);
  while (!run.empty()) {
    const std::size_t begin = out.size();
    const std::size_t size = compressor_.compress_by_delta(run, out);
    if (size == 0) break;
    add_run(begin, out.size(), run.first(size), packed);
    run = run.subspan(size);
  }
  std::size_t last = 0;
  missing_ = bytes_missing(run, last);
  cut_at_ = out.size() + last;
  is_cut_alone_ = last == 0;
  out.insert(out.end(), run.begin(), run.end());
}

// Appends the rest of the record that began in the run before. A single record between compressed ones is
// compressed with them.
format::Bytes RingCompressor::end_record(format::Bytes run, std::vector<std::byte>& out,
                                         std::vector<CompressedRun>& packed) {
  if (missing_ == 0) return run;
  const format::Bytes end = run.first(std::min(missing_, run.size()));
  out.insert(out.end(), end.begin(), end.end());
  missing_ -= end.size();
  if (missing_ == 0 && is_cut_alone_)
    add_run(cut_at_, out.size(), format::Bytes(out).subspan(cut_at_), packed);
  return run.subspan(end.size());
}

// Extends the run before, if it is adjacent.
void RingCompressor::add_run(std::size_t begin, std::size_t end, format::Bytes records,
                             std::vector<CompressedRun>& packed) const {
  if (packed.size() == first_ || packed.back().end != begin) packed.push_back({begin, begin, 0, {}});
  CompressedRun& run = packed.back();
  run.end = end;
  run.inflated += records.size();
  count_records(records, run.counts);
}

bool RecordQueue::push(Batch& batch, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const std::size_t size = batch.records.size();
  const auto is_taken = [&] { return abandoned_ || batches_.empty() || bytes_ + size <= limit_; };
  if (!has_room_.wait_for(lock, patience, is_taken)) return false;
  if (abandoned_) return true;
  batches_.push_back(std::move(batch));
  bytes_ += size;
  has_batch_.notify_one();
  return true;
}

std::optional<Batch> RecordQueue::pop() {
  std::unique_lock lock(mutex_);
  has_batch_.wait(lock, [&] { return closed_ || abandoned_ || !batches_.empty(); });
  if (abandoned_ || batches_.empty()) return std::nullopt;
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  bytes_ -= batch.records.size();
  has_room_.notify_one();
  return batch;
}

void RecordQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  has_batch_.notify_all();
}

void RecordQueue::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  batches_.clear();
  bytes_ = 0;
  has_room_.notify_all();
  has_batch_.notify_all();
}

bool RecordQueue::is_abandoned() {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

std::size_t RecordQueue::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void RecordQueue::give_back(std::vector<std::byte> buffer) {
  constexpr std::size_t kMostSpareBuffers = 4;
  const std::lock_guard lock(mutex_);
  if (spare_.size() < kMostSpareBuffers) spare_.push_back(std::move(buffer));
}

void RecordQueue::free_spares() {
  const std::lock_guard lock(mutex_);
  spare_.clear();
}

std::vector<std::byte> RecordQueue::spare_buffer() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  std::vector<std::byte> buffer = std::move(spare_.back());
  spare_.pop_back();
  buffer.clear();
  return buffer;
}

}  // namespace tacho::record
