#include "record/stacks/sleeping_stacks.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "bpf/programs/thread_record.h"
#include "bpf/thread_list.h"
#include "record/stacks/deferred_unwinder.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostFrames = 127;
constexpr std::size_t kMostBytes = 32 << 10;  // of a stack
constexpr std::size_t kMostThreads = 16384;   // as many as the map has room for
constexpr std::size_t kAtOnce = 1024;
constexpr std::chrono::seconds kMostSearchTime{5};

// Without a stack it is not unwound.
DeferredUnwinder::Stack copy_of(const bpf::ListedThread& thread, ForeignReader& reader) {
  const auto registers = std::bit_cast<tacho_registers>(thread.registers);
  DeferredUnwinder::Stack stack;
  stack.sample.process = thread.pid;
  stack.sample.walk.tid = thread.tid;
  stack.sample.walk.frames = {TACHO_USER_IP(&registers)};
  stack.copy.sp = TACHO_USER_SP(&registers);
  stack.copy.bp = TACHO_USER_FP(&registers);
  stack.copy.extra = TACHO_USER_EXTRA(&registers);
  stack.copy.frames = 1;
  stack.copy.is_bp_known = stack.copy.is_extra_known = true;
  if (auto bytes = reader.memory_of(thread.tid, stack.copy.sp, kMostBytes))
    stack.copy.bytes = std::move(*bytes);
  stack.pass = thread.switches;
  return stack;
}

bool sleeps(const bpf::ListedThread& thread) {
  const auto registers = std::bit_cast<tacho_registers>(thread.registers);
  return !thread.is_on_cpu && thread.has_memory && TACHO_USER_IP(&registers) != 0 &&
         !TACHO_IS_32_BIT(&registers);
}

Result<std::vector<bpf::ListedThread>> sleeping_threads(const Target& target, const TargetTasks& tasks) {
  const bool by_process = target.watch == Watch::Processes, by_thread = target.watch == Watch::Threads;
  auto list = bpf::ThreadList::load(by_process  ? TACHO_THREADS_OF_PROCESSES
                                    : by_thread ? TACHO_NAMED_THREADS
                                                : TACHO_ALL_THREADS,
                                    by_process  ? std::span<const int>(tasks.processes)
                                    : by_thread ? std::span<const int>(tasks.threads)
                                                : std::span<const int>());
  if (!list) return std::move(list.error());
  auto threads = list->read_threads();
  if (!threads) return std::move(threads.error());
  std::erase_if(*threads, [](const bpf::ListedThread& each) { return !sleeps(each); });
  if (threads->size() > kMostThreads) threads->resize(kMostThreads);
  std::ranges::stable_sort(*threads, {}, &bpf::ListedThread::pid);
  return threads;
}

// The end of the next batch of stacks, limited by the threads and processes that the unwinder supports.
std::size_t end_of_batch(const std::vector<bpf::ListedThread>& threads, std::size_t first) {
  std::size_t end = first, processes = 0;
  for (; end < threads.size() && end - first < kAtOnce; ++end) {
    const bool is_new = end == first || threads[end].pid != threads[end - 1].pid;
    if (is_new && processes++ == DeferredUnwinder::kMostLookedUp) break;
  }
  return end;
}

// Calls `sink` for each unwound stack.
Result<> unwind(const std::vector<bpf::ListedThread>& threads, const std::shared_ptr<ForeignReader>& reader,
                const std::function<bool()>& stop,
                const std::function<Result<>(const DeferredUnwinder::Stack&)>& sink) {
  const auto unwinder = std::make_shared<DeferredUnwinder>(kMostFrames, reader);
  if (auto done = unwinder->start(); !done) return done;
  const auto until = Clock::now() + kMostSearchTime;
  Result<> result = Done{};
  const auto late = [&stop] {
    return Error{stop() ? "stopped by a signal" : "unwinding took longer than 5 s", ETIMEDOUT};
  };
  for (std::size_t first = 0, end = 0; first < threads.size() && result; first = end) {
    DeferredUnwinder::Stacks stacks;
    end = end_of_batch(threads, first);
    for (std::size_t i = first; i < end && result; ++i) {
      if (stop() || Clock::now() > until) result = late();
      stacks.push_back(copy_of(threads[i], *reader));
    }
    unwinder->give_stacks(std::move(stacks));
    for (std::size_t left = end - first; left != 0 && result;) {
      const auto done = unwinder->take_finished();
      for (const DeferredUnwinder::Stack& stack : done)
        if (result) result = sink(stack);
      left -= done.size();
      if (done.empty() && (stop() || Clock::now() > until)) {
        unwinder->give_up_stacks();
        result = late();
      } else if (done.empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  unwinder->end_thread();
  return result;
}

}  // namespace

Result<> give_sleeping_stacks(std::span<const bpf::LoadedObject> objects,
                              const std::optional<bpf::PidNumbers>& numbers, const Target& target,
                              const TargetTasks& tasks, const std::shared_ptr<ForeignReader>& reader,
                              const std::function<bool()>& stop) {
  // A command has no threads that wait before the recording.
  if (target.watch == Watch::Command ||
      std::ranges::none_of(objects, &bpf::LoadedObject::asks_for_sleeping_stacks))
    return Done{};
  const auto give = [&](const DeferredUnwinder::Stack& stack) -> Result<> {
    std::vector<std::uint64_t> frames = stack.sample.walk.frames;
    std::erase(frames, TACHO_INTERRUPTED);
    for (const bpf::LoadedObject& object : objects) {
      if (!object.asks_for_sleeping_stacks()) continue;
      const std::uint32_t tid = bpf::kernel_tid_of(numbers, stack.sample.walk.tid);
      auto done = object.put_sleeping_stack(tid, stack.pass, frames);
      if (!done) return done;
    }
    return Done{};
  };
  const auto threads = sleeping_threads(target, tasks);
  auto done = threads ? unwind(*threads, reader, stop, give) : Result<>(threads.error());
  return done ? done
              : std::move(done.error()).in("waits that began before the recording have no user stacks");
}

}  // namespace tacho::record
