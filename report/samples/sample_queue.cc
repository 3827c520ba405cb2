#include "report/samples/sample_queue.h"

#include <algorithm>
#include <utility>

namespace tacho::report {

void SampleBatch::add(QueuedSample sample, const format::BlockRef& block) {
  // Records of a few processors take turns, so the block is one of the last.
  auto known = std::find(blocks.rbegin(), blocks.rend(), block);
  if (known == blocks.rend()) {
    blocks.push_back(block);
    known = blocks.rbegin();
  }
  sample.block = static_cast<std::uint16_t>(blocks.rend() - known - 1);
  samples.push_back(sample);
  // The other thread looked at this memory last: it is fetched back in time.
  constexpr std::size_t kAhead = 16;
  if (samples.size() + kAhead < samples.capacity())
    __builtin_prefetch(samples.data() + samples.size() + kAhead, 1);
  bytes += sample.size;
}

void SampleBatch::clear() {
  samples.clear();
  blocks.clear();
  bytes = 0;
  bytes_read = 0;
}

bool SampleQueue::put(SampleBatch& batch) {
  if (batch.samples.empty() && batch.bytes_read == 0) return true;
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] { return bytes_ < kMostBytes || stopped_; });
  if (stopped_) return false;
  bytes_ += batch.bytes;
  waiting_.push_back(std::move(batch));
  batch = {};
  if (!empty_.empty()) {
    batch = std::move(empty_.back());
    empty_.pop_back();
  }
  lock.unlock();
  has_batch_.notify_one();
  return true;
}

void SampleQueue::wait_until_shown() {
  std::unique_lock lock(mutex_);
  is_idle_.wait(lock, [this] { return (takes_ && waiting_.empty()) || stopped_; });
}

void SampleQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  has_batch_.notify_one();
}

bool SampleQueue::take(SampleBatch& batch) {
  batch.clear();  // here, so that blocks are given back before this waits
  std::unique_lock lock(mutex_);
  if (batch.samples.capacity() > 0) empty_.push_back(std::move(batch));
  takes_ = true;
  if (waiting_.empty()) is_idle_.notify_one();
  has_batch_.wait(lock, [this] { return !waiting_.empty() || ended_; });
  takes_ = false;
  if (waiting_.empty()) return false;
  batch = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= batch.bytes;
  lock.unlock();
  has_room_.notify_one();
  return true;
}

void SampleQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  has_room_.notify_one();
  is_idle_.notify_one();
}

}  // namespace tacho::report
