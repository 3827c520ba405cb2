#include "format/base/worker_pool.h"

#include <algorithm>
#include <cassert>
#include <system_error>

namespace tacho::format {

unsigned usual_workers() {
  constexpr unsigned kMost = 8;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

WorkerPool::WorkerPool(unsigned workers) {
  for (unsigned worker = 1; worker < workers; ++worker) {
    try {
      threads_.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error&) {
      break;  // run with fewer threads
    }
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  begun_.notify_all();
}

WorkerPool::Forked WorkerPool::fork(std::size_t count, Task task) {
  {
    const std::lock_guard lock(mutex_);
    assert(!is_forked_ && "the last fork was not joined");
    is_forked_ = true;
    task_ = std::move(task);
    count_ = failed_ = count;
    next_ = 0;
    result_ = Done{};
    thrown_ = nullptr;
  }
  if (count > 0) begun_.notify_all();
  return Forked(*this);
}

Result<> WorkerPool::run_tasks(std::size_t count, Task task) { return fork(count, std::move(task)).join(); }

void WorkerPool::take_tasks(std::unique_lock<std::mutex>& lock, unsigned worker) {
  while (next_ < count_) {
    const std::size_t number = next_++;
    ++running_;
    lock.unlock();
    Result<> result = Done{};
    std::exception_ptr thrown;
    try {
      result = task_(number, worker);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    --running_;
    if (result && thrown == nullptr) continue;
    next_ = count_;
    // Tasks start in order, so all tasks before the first failing one were started: the first error is
    // deterministic.
    if (number >= failed_) continue;
    failed_ = number;
    result_ = std::move(result);
    thrown_ = std::move(thrown);
  }
  if (running_ == 0) ended_.notify_all();
}

void WorkerPool::work(unsigned worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [this] { return is_over_ || next_ < count_; });
    if (is_over_) return;
    take_tasks(lock, worker);
  }
}

Result<> WorkerPool::join() {
  std::unique_lock lock(mutex_);
  take_tasks(lock, 0);
  ended_.wait(lock, [this] { return running_ == 0; });
  task_ = nullptr;
  is_forked_ = false;
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return std::exchange(result_, Done{});
}

void WorkerPool::drop() {
  std::unique_lock lock(mutex_);
  next_ = count_;
  ended_.wait(lock, [this] { return running_ == 0; });
  task_ = nullptr;
  is_forked_ = false;
}

}  // namespace tacho::format
