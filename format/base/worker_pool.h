// A small pool of threads: tasks are forked by number, run by all workers, and joined.
//
//   WorkerPool pool(usual_workers());
//   auto forked = pool.fork(slices, [&](auto slice, auto worker) { return sums[worker].add(slice); });
//   prepare_next();  // on the caller's thread, meanwhile
//   if (auto done = forked.join(); !done) return done;
//
// The caller's thread is worker 0; it runs tasks in join() only. So a pool of one worker has no thread and
// runs everything there.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "format/base/result.h"

namespace tacho::format {

// The number of CPUs that this process may use, at most 8.
unsigned usual_workers();

class WorkerPool {
 public:
  // Runs task `number`. `worker` is below workers(), and different for tasks that run at the same time, so
  // data of a worker needs no lock. A task must not use the pool.
  using Task = std::function<Result<>(std::size_t number, unsigned worker)>;
  class Forked;

  // Starts `workers` - 1 threads (0 counts as 1), or fewer if no more can be created.
  explicit WorkerPool(unsigned workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // The number of threads, the caller's included.
  unsigned workers() const { return static_cast<unsigned>(threads_.size()) + 1; }

  // Starts tasks 0 up to `count` in order. The last fork must have been joined.
  [[nodiscard]] Forked fork(std::size_t count, Task task);
  // Forks and joins.
  Result<> run_tasks(std::size_t count, Task task);

 private:
  // Runs tasks until none is left; releases `lock` while a task runs.
  void take_tasks(std::unique_lock<std::mutex>& lock, unsigned worker);
  void work(unsigned worker);
  Result<> join();
  void drop();

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  // Guarded by mutex_. `task_` changes only while no task runs.
  Task task_;
  std::size_t count_ = 0, next_ = 0, running_ = 0;
  std::size_t failed_ = 0;  // the lowest number of a failed task; count_: none failed
  Result<> result_ = Done{};
  std::exception_ptr thrown_;  // instead of result_
  bool is_forked_ = false, is_over_ = false;
  std::vector<std::jthread> threads_;  // the last member: they use the others
};

// Started tasks. Their data must outlive join() or this object.
class [[nodiscard]] WorkerPool::Forked {
 public:
  Forked(Forked&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  Forked& operator=(Forked&&) = delete;
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  // Without join(): waits for running tasks; the others are dropped.
  ~Forked() {
    if (pool_ != nullptr) pool_->drop();
  }

  // Runs tasks on the caller's thread too, and returns when all are done. After a failure no more tasks are
  // started; the error is that of the lowest number, for any number of workers. Rethrows exceptions of tasks.
  // Call it once.
  Result<> join() { return std::exchange(pool_, nullptr)->join(); }

 private:
  friend class WorkerPool;
  explicit Forked(WorkerPool& pool) : pool_(&pool) {}
  WorkerPool* pool_;
};

// Calls `slice(begin, end)` for each slice of at most `size` of `count` things, on all workers.
template <class Slice>
void for_slices(WorkerPool& pool, std::size_t count, std::size_t size, Slice&& slice) {
  auto all = pool.run_tasks((count + size - 1) / size, [&](std::size_t number, unsigned) -> Result<> {
    slice(number * size, number * size + size < count ? number * size + size : count);
    return Done{};
  });
  static_cast<void>(all);  // no slice returns an error
}

}  // namespace tacho::format
