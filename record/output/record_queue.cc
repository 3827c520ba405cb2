#include "record/output/record_queue.h"

#include <algorithm>

namespace tacho::record {

bool RecordQueue::push_batch(Batch& batch, std::chrono::milliseconds patience) {
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

std::optional<Batch> RecordQueue::pop_batch() {
  std::unique_lock lock(mutex_);
  has_batch_.wait(lock, [&] { return closed_ || abandoned_ || !batches_.empty(); });
  if (abandoned_ || batches_.empty()) return std::nullopt;
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  bytes_ -= batch.records.size();
  has_room_.notify_one();
  return batch;
}

void RecordQueue::close_queue() {
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
