// Mutexes and read-write locks for which threads wait, and their owners, looked at twice: what did not change
// between the looks, and whose threads did not run, stands still.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "record/host/foreign_reader.h"
#include "record/now/thread_stack.h"

namespace tacho::record {

// A wait in futex(2).
struct FutexWait {
  std::uint64_t address = 0;  // of the futex
  std::uint32_t value = 0;    // with which the thread went to sleep
  bool locks = false;         // FUTEX_LOCK_PI: the kernel takes the lock
  bool is_private = false;    // FUTEX_PRIVATE_FLAG: only threads of this process use it
};
std::optional<FutexWait> futex_wait_in(const CurrentCall& call);

// Words of memory around a futex. `before` ends at the futex and `from` begins with it; both may be shorter.
struct FutexWords {
  static constexpr std::size_t kBefore = 3, kFrom = 7;
  std::span<const std::uint32_t> before, from;
};

// The owner of the lock, as a tid of the innermost pid namespace of the thread that waits.
struct FutexOwner {
  LockKind kind = LockKind::Mutex;
  std::uint32_t tid = 0;
};
// Knows these: locks with priority inheritance, which the kernel takes (futex(2)); mutexes of glibc (struct
// __pthread_mutex_s), robust ones too; read-write locks of glibc taken by a writer (struct
// __pthread_rwlock_arch_t); mutexes of musl that have an owner. nullopt: another use of a futex, as in
// condition variables, semaphores and joins, or a lock that nobody has now.
// bpf/programs/recorders/futex_owner.h decides the same in the kernel.
std::optional<FutexOwner> owner_in(const FutexWait& wait, const FutexWords& words);

// Context switches of a thread, from its /proc/PID/task/TID/status; nullopt: there are none.
std::optional<std::uint64_t> switches_in(std::string_view status);

// Looks at the locks for which threads wait.
class LockLooks {
 public:
  explicit LockLooks(ForeignReader& reader);
  LockLooks(const LockLooks&) = delete;
  LockLooks& operator=(const LockLooks&) = delete;
  ~LockLooks();

  // The first look: fills `lock` of each thread, for those that did not run while their lock was read.
  // Returns the owners that are not among `threads`.
  std::vector<int> first(std::span<ThreadStack> threads);
  // The owner that the lock has now for which a thread waits; 0: unknown.
  std::uint32_t owner_now(const ThreadStack& waiting);
  // Includes a thread in the second look.
  void watch(std::uint32_t tid);
  // The second look, after a pause if some thread waits for a lock: fills `moved` of threads that wait or
  // own, and `lock.owner_later`. Returns the time between the looks; 0: no thread waits for a lock with an
  // owner.
  std::chrono::nanoseconds second(std::span<ThreadStack> threads, const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::record
