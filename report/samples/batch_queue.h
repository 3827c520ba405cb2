// Batches on their way from one thread to another.
//
// What is handed over travels by the thousand, so that neither thread waits for the other at each item. How
// far the giving side runs ahead is bounded by bytes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace tacho::report {

// A Batch has `bytes`, what it counts for; is_empty(): not worth handing over; clear(), which keeps memory to
// be filled again; and has_memory(). Every member may be called by the side that it is listed under, and by
// no other.
template <class Batch>
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}  // that wait

  // The giving side. put() waits for room, takes the batch and leaves it empty; false: nobody wants more.
  bool put(Batch& batch) {
    if (batch.is_empty()) return true;
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return bytes_ < most_bytes_ || stopped_; });
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
  void wait_until_taken() {  // all that was put, and until the other side waits for more
    std::unique_lock lock(mutex_);
    is_idle_.wait(lock, [this] { return (takes_ && waiting_.empty()) || stopped_; });
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    has_batch_.notify_one();
  }

  // The other side. take() waits for a batch; false: there will be none.
  bool take(Batch& batch) {
    batch.clear();  // here, so that what it holds is given back before this waits
    std::unique_lock lock(mutex_);
    if (batch.has_memory()) empty_.push_back(std::move(batch));
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
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    has_room_.notify_one();
    is_idle_.notify_one();
  }

 private:
  const std::size_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_batch_, is_idle_;
  std::deque<Batch> waiting_;
  std::vector<Batch> empty_;  // kept for their memory
  std::size_t bytes_ = 0;
  bool takes_ = false;  // the other side waits for a batch
  bool ended_ = false, stopped_ = false;
};

}  // namespace tacho::report
