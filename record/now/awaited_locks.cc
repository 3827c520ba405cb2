#include "record/now/awaited_locks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "record/events/target.h"
#include "record/host/running_processes.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

using Words = std::vector<std::uint32_t>;
using std::chrono::milliseconds;

constexpr std::uint64_t kFutexCommand = 0x7f;  // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
constexpr std::uint64_t kFutexPrivate = 0x80;
constexpr std::uint64_t kFutexWait = 0, kFutexLockPi = 6, kFutexWaitBitset = 9, kFutexLockPi2 = 13;
constexpr std::uint32_t kOwnerMask = 0x3fffffff, kHasWaiters = 0x80000000;

std::uint32_t word_at(std::span<const std::uint32_t> words, std::size_t index) {
  return index < words.size() ? words[index] : 0;
}

// glibc's __kind: type (2 bits) and flags.
constexpr std::uint32_t kTypeBits = 3, kRecursive = 1, kRobust = 0x10, kPriorityInheritance = 0x20,
                        kPriorityProtection = 0x40, kShared = 0x80, kKnownKinds = 0x3ff;

// The value of __lock while a thread waits for a mutex that is neither robust nor of the kernel.
constexpr std::uint32_t kContended = 2;

// Words from __lock on: lock, count, owner, nusers, kind.
std::uint32_t owner_of_glibc_mutex(const FutexWait& wait, std::span<const std::uint32_t> words) {
  constexpr std::size_t kCount = 1, kOwner = 2, kUsers = 3, kKind = 4;
  if (words.size() <= kKind || words[0] != kContended || words[kUsers] == 0) return 0;
  const std::uint32_t kind = words[kKind];
  constexpr std::uint32_t kOthers = kRobust | kPriorityInheritance | kPriorityProtection;
  if ((kind & (~kKnownKinds | kOthers)) != 0 || ((kind & kShared) == 0) != wait.is_private) return 0;
  if (((kind & kTypeBits) == kRecursive) != (words[kCount] != 0)) return 0;
  return words[kOwner];
}

// The owner's tid is in the futex, beside the bit that says that others wait.
std::uint32_t owner_in_futex(const FutexWords& words) {
  constexpr std::size_t kGlibcKind = 4;  // words after the futex
  const std::uint32_t kind = word_at(words.from, kGlibcKind);
  const bool is_robust = (kind & kRobust) != 0 && (kind & ~kKnownKinds) == 0;
  // musl has the type in the word before. A mutex of type 0 has no owner: its lock is EBUSY.
  constexpr std::uint32_t kMuslTypes = 0xf, kMuslShared = 0x80;
  const std::uint32_t type = words.before.empty() ? 0 : words.before.back();
  const bool is_musl = (type & kMuslTypes) != 0 && (type & ~(kMuslTypes | kMuslShared)) == 0;
  return is_robust || is_musl ? words.from.front() & kOwnerMask : 0;
}

// The value of __wrphase_futex and of __writers_futex while others wait for a writer: 1, and the bit for
// "used".
constexpr std::uint32_t kWriterHasIt = 3;

// struct __pthread_rwlock_arch_t: readers, writers, wrphase_futex, writers_futex, 2 unused, cur_writer,
// shared.
std::uint32_t writer_of_glibc_lock(const FutexWait& wait, const FutexWords& words) {
  constexpr std::uint32_t kWritePhase = 1, kWriteLocked = 2;
  if (words.before.size() < FutexWords::kBefore || words.from.front() != kWriterHasIt) return 0;
  const auto writer = [&](std::uint32_t readers, std::uint32_t bit, std::size_t current) {
    const bool is_shared = word_at(words.from, current + 1) == 1;
    const bool is_known = word_at(words.from, current + 1) <= 1 && word_at(words.from, current - 1) == 0 &&
                          word_at(words.from, current - 2) == 0;
    return is_known && (readers & bit) != 0 && is_shared != wait.is_private ? word_at(words.from, current)
                                                                            : 0;
  };
  // A reader waits at the third word, a writer at the fourth one.
  if (const std::uint32_t by_reader = writer(words.before[1], kWritePhase, 4); by_reader != 0)
    return by_reader;
  return writer(words.before[0], kWriteLocked, 3);
}

Words words_at(std::uint32_t thread, std::uint64_t address, std::size_t count, ForeignReader& reader) {
  const auto bytes = reader.memory_of(thread, address, count * sizeof(std::uint32_t));
  Words words(bytes ? bytes->size() / sizeof(std::uint32_t) : 0);
  if (!words.empty()) std::memcpy(words.data(), bytes->data(), words.size() * sizeof(std::uint32_t));
  return words;
}

std::string task_file(const ThreadStack& thread, std::string_view file) {
  return text_of_file(fmt::format("/proc/{}/task/{}/{}", thread.pid, thread.tid, file));
}

std::optional<std::uint64_t> switches_of(const ThreadStack& thread) {
  return switches_in(task_file(thread, "status"));
}

// Whether a thread is in this call. The kernel has restart_syscall() there after a wait with a time-out was
// interrupted by a signal or by ptrace.
bool is_in(const ThreadStack& thread, const CurrentCall& call, ForeignReader& reader) {
  const auto now =
      parse_call_line(reader.text_of(fmt::format("/proc/{}/task/{}/syscall", thread.pid, thread.tid)));
  return now && (now->call.number == call.number || now->call.number == SYS_restart_syscall) &&
         std::ranges::equal(now->call.arguments, call.arguments);
}

// Tids by pid namespace: a lock has the tid that its owner has in its own one.
class OwnerNumbers {
 public:
  // In this process's namespace: the owner's tid, which is `tid` in the innermost one of `process`; 0:
  // unknown.
  std::uint32_t of(std::uint32_t process, std::uint32_t tid, bool is_private) {
    auto [known, is_new] = nested_.try_emplace(process);
    if (is_new) read(process, known->second);
    if (known->second) {
      const auto found = known->second->find(tid);
      return found == known->second->end() ? 0 : found->second;
    }
    const bool is_ours = ::access(fmt::format("/proc/{}/task/{}", process, tid).c_str(), F_OK) == 0;
    const bool is_another = !is_private && ::access(fmt::format("/proc/{}", tid).c_str(), F_OK) == 0;
    return is_ours || is_another ? tid : 0;
  }

 private:
  using Numbers = std::unordered_map<std::uint32_t, std::uint32_t>;  // innermost to this process's

  // "4711,12" in a namespace below this process's, "4711" in this one.
  static std::string numbers_of(const std::string& folder) {
    return numbers_in_namespaces(text_of_file(folder + "/status"));
  }
  static void read(std::uint32_t process, std::optional<Numbers>& numbers) {
    const std::string folder = fmt::format("/proc/{}", process);
    if (numbers_of(folder).find(',') == std::string::npos) return;
    numbers.emplace();
    for (const int tid : numbers_in(folder + "/task")) {
      const std::string all = numbers_of(fmt::format("{}/task/{}", folder, tid));
      const auto inner = whole_number<std::uint32_t>(std::string_view(all).substr(all.rfind(',') + 1));
      if (inner) numbers->emplace(*inner, static_cast<std::uint32_t>(tid));
    }
  }
  std::map<std::uint32_t, std::optional<Numbers>> nested_;  // by process; nullopt: of this namespace
};

}  // namespace

std::optional<FutexWait> futex_wait_in(const CurrentCall& call) {
  if (call.number != SYS_futex) return std::nullopt;
  const std::uint64_t command = call.arguments[1] & kFutexCommand;
  const bool locks = command == kFutexLockPi || command == kFutexLockPi2;
  if (!locks && command != kFutexWait && command != kFutexWaitBitset) return std::nullopt;
  return FutexWait{.address = call.arguments[0],
                   .value = static_cast<std::uint32_t>(call.arguments[2]),
                   .locks = locks,
                   .is_private = (call.arguments[1] & kFutexPrivate) != 0};
}

std::optional<FutexOwner> owner_in(const FutexWait& wait, const FutexWords& words) {
  if (words.from.empty()) return std::nullopt;
  FutexOwner owner;
  const bool has_waiters = (words.from.front() & kHasWaiters) != 0;
  if (wait.locks) {
    if (has_waiters) owner.tid = words.from.front() & kOwnerMask;
  } else if (wait.value != words.from.front()) {
    return std::nullopt;
  } else if (has_waiters) {
    owner.tid = owner_in_futex(words);
  } else if (wait.value == kContended) {
    owner.tid = owner_of_glibc_mutex(wait, words.from);
  } else if (wait.value == kWriterHasIt) {
    owner = {LockKind::ReadWriteLock, writer_of_glibc_lock(wait, words)};
  }
  return owner.tid == 0 ? std::nullopt : std::optional(owner);
}

std::optional<std::uint64_t> switches_in(std::string_view status) {
  const auto own = whole_number<std::uint64_t>(field_of_status(status, "voluntary_ctxt_switches"));
  const auto forced = whole_number<std::uint64_t>(field_of_status(status, "nonvoluntary_ctxt_switches"));
  return own && forced ? std::optional(*own + *forced) : std::nullopt;
}

struct LockLooks::State {
  explicit State(ForeignReader& foreign) : reader(foreign) {}
  ForeignReader& reader;
  OwnerNumbers numbers;
  std::set<std::uint32_t> seen;                               // all threads
  std::set<std::uint32_t> involved;                           // those that wait, and owners
  std::unordered_map<std::uint32_t, std::uint64_t> switches;  // at the first look

  struct Look {
    std::uint64_t switches = 0;
    AwaitedLock lock;
  };
  // Reads the lock for which a thread waits, or waited.
  std::optional<AwaitedLock> read(const ThreadStack& thread, const FutexWait& wait) {
    const Words from = words_at(thread.tid, wait.address, FutexWords::kFrom, reader);
    constexpr std::size_t kBytesBefore = FutexWords::kBefore * sizeof(std::uint32_t);
    const Words before = words_at(thread.tid, wait.address - kBytesBefore, FutexWords::kBefore, reader);
    const auto owner = owner_in(wait, {before, from});
    const std::uint32_t tid = owner ? numbers.of(thread.pid, owner->tid, wait.is_private) : 0;
    if (tid == 0) return std::nullopt;
    return AwaitedLock{.address = wait.address, .kind = owner->kind, .owner = tid};
  }
  // Reads the lock for which a thread waits; of address 0: it waits for none that has an owner. nullopt: the
  // thread is not in its call, or ran meanwhile: then it is in no call when asked again, or it has blocked
  // again, which counts as a switch.
  std::optional<Look> look(const ThreadStack& thread, const FutexWait& wait) {
    const auto count = switches_of(thread);
    if (!count || !is_in(thread, thread.call, reader)) return std::nullopt;
    const auto lock = read(thread, wait);
    if (!is_in(thread, thread.call, reader) || switches_of(thread) != count) return std::nullopt;
    return Look{*count, lock.value_or(AwaitedLock{})};
  }
};

LockLooks::LockLooks(ForeignReader& reader) : state_(std::make_unique<State>(reader)) {}
LockLooks::~LockLooks() = default;

std::vector<int> LockLooks::first(std::span<ThreadStack> threads) {
  for (const ThreadStack& each : threads) state_->seen.insert(each.tid);
  // A thread that ptrace stopped may not be back in its call yet.
  constexpr int kTries = 5;
  std::set<int> missing;
  for (ThreadStack& thread : threads) {
    const auto wait = futex_wait_in(thread.call);
    if (!wait || thread.registers.empty()) continue;
    for (int tries = 0; tries < (thread.paused.count() == 0 ? 1 : kTries); ++tries) {
      if (tries != 0) (void)::poll(nullptr, 0, 1);
      const auto look = state_->look(thread, *wait);
      if (!look) continue;
      if (look->lock.owner == 0) break;
      thread.lock = look->lock;
      state_->switches[thread.tid] = look->switches;
      state_->involved.insert({thread.tid, thread.lock.owner});
      if (!state_->seen.contains(thread.lock.owner)) missing.insert(static_cast<int>(thread.lock.owner));
      break;
    }
  }
  return {missing.begin(), missing.end()};
}

std::uint32_t LockLooks::owner_now(const ThreadStack& waiting) {
  const auto wait = futex_wait_in(waiting.call);
  const auto lock = wait ? state_->read(waiting, *wait) : std::nullopt;
  return lock ? lock->owner : 0;
}

void LockLooks::watch(std::uint32_t tid) { state_->involved.insert(tid); }

std::chrono::nanoseconds LockLooks::second(std::span<ThreadStack> threads,
                                           const std::function<bool()>& stop) {
  if (state_->involved.empty()) return {};
  const auto is_involved = [this](const ThreadStack& each) { return state_->involved.contains(each.tid); };
  for (const ThreadStack& each : threads)
    if (is_involved(each) && !state_->switches.contains(each.tid))
      if (const auto count = switches_of(each)) state_->switches[each.tid] = *count;
  using Clock = std::chrono::steady_clock;
  constexpr milliseconds kPause{100};
  const auto begin = Clock::now();
  while (Clock::now() - begin < kPause && !stop()) (void)::poll(nullptr, 0, 10);
  const auto between = Clock::now() - begin;
  for (ThreadStack& thread : threads) {
    const auto before = state_->switches.find(thread.tid);
    if (before == state_->switches.end() || !is_involved(thread)) continue;
    const auto wait = thread.lock.address != 0 ? futex_wait_in(thread.call) : std::nullopt;
    if (const auto look = wait ? state_->look(thread, *wait) : std::nullopt)
      thread.lock.owner_later = look->lock.owner;
    thread.moved = switches_of(thread).value_or(before->second) - before->second;
  }
  return between;
}

}  // namespace tacho::record
