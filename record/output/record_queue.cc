#include "record/output/record_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/records/record_view.h"

namespace tacho::record {

namespace {

// The bytes that the last record lacks; `last`: where it begins. Records are multiples of 8 bytes, as rings
// are, so that a header is never cut.
std::size_t bytes_missing(format::Bytes records, std::size_t& last) {
  for (last = 0; records.size() - last >= format::kRecordHeaderSize;) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + last + 6, sizeof size);
    if (size < format::kRecordHeaderSize) return 0;  // no record; the counting step finds it
    if (size > records.size() - last) return size - (records.size() - last);
    last += size;
  }
  return 0;
}

}  // namespace

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

// The rest of the record that started in the run before. A single record between compressed ones is one of
// them.
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

// Extends the run before it where there is nothing between them.
void RingCompressor::add_run(std::size_t begin, std::size_t end, format::Bytes records,
                             std::vector<CompressedRun>& packed) const {
  if (packed.size() == first_ || packed.back().end != begin) packed.push_back({begin, begin, 0, {}});
  CompressedRun& run = packed.back();
  run.end = end;
  run.inflated += records.size();
  count_records(records, run.counts);
}

namespace {

constexpr std::size_t kMostSpareBuffers = 4;

}  // namespace

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
