#include "record/now/thread_stacks.h"

#include <elf.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "bpf/thread_list.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "record/host/running_kernel.h"
#include "record/host/running_processes.h"
#include "record/now/awaited_locks.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A thread stopped by ptrace while its registers and its stack are read.
//
// It is attached by PTRACE_SEIZE and stopped by PTRACE_INTERRUPT: no signal is sent, a thread that was
// stopped by a signal stays stopped afterwards, and if this process dies at any moment, the kernel resumes
// the thread. One thread must construct and destroy it (tracers are threads), in a child of a ForeignReader:
// PTRACE_SEIZE waits while the process is in execve.
class StoppedThread {
 public:
  // Waits at most `patience`: a thread in uninterruptible sleep does not stop. It then stays attached, and
  // runs, until the calling process ends.
  static Result<StoppedThread> stop(pid_t thread, milliseconds patience) {
    const std::string name = "thread " + std::to_string(thread);
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      const int code = errno;
      return code == EPERM ? Error{name +
                                       " cannot be stopped: another program traces it, or the rights are "
                                       "missing (root, or CAP_SYS_PTRACE)",
                                   code}
                           : system_error(name + " cannot be stopped", code);
    }
    const auto began = Clock::now();
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0)
      return system_error(name + " cannot be stopped", errno);
    for (int looks = 0;; ++looks) {
      int status = 0;
      const pid_t got = ::waitpid(thread, &status, __WALL | WNOHANG);
      if (got < 0 && errno != EINTR) return system_error(name + " cannot be stopped", errno);
      if (got == thread && !WIFSTOPPED(status)) return Error{name + " ended", ESRCH};
      if (got == thread) return StoppedThread(thread, signal_of(status), began);
      if (Clock::now() - began > patience) return Error{name + " does not stop", ETIMEDOUT};
      // It usually stops within some microseconds.
      constexpr int kSpins = 200;
      if (looks >= kSpins) (void)::poll(nullptr, 0, 1);
    }
  }
  StoppedThread(StoppedThread&& other) noexcept
      : thread_(std::exchange(other.thread_, 0)), signal_(other.signal_), began_(other.began_) {}
  StoppedThread& operator=(StoppedThread&&) = delete;
  ~StoppedThread() { (void)resume(); }

  // General registers, as PTRACE_GETREGSET gives them: user_regs_struct.
  Result<std::vector<std::uint64_t>> registers() const {
    std::array<std::uint64_t, 64> words{};
    iovec registers{words.data(), sizeof words};
    if (::ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &registers) != 0)
      return system_error("registers of thread " + std::to_string(thread_), errno);
    return std::vector<std::uint64_t>(words.begin(),
                                      words.begin() + registers.iov_len / sizeof words.front());
  }
  // Returns an upper bound of how long it was stopped: since the request to stop.
  std::chrono::nanoseconds resume() {
    if (thread_ == 0) return {};
    (void)::ptrace(PTRACE_DETACH, std::exchange(thread_, 0), nullptr, static_cast<long>(signal_));
    return Clock::now() - began_;
  }

 private:
  StoppedThread(pid_t thread, int signal, Clock::time_point began)
      : thread_(thread), signal_(signal), began_(began) {}
  // The signal of a stop; 0: the requested stop, or a group-stop.
  static int signal_of(int status) {
    constexpr int kEventShift = 16;  // of a ptrace event in a wait status
    return status >> kEventShift == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
  }

  pid_t thread_;
  int signal_;  // pending for the thread, and delivered
  Clock::time_point began_;
};

// A record's size has 16 bits; the copied stack gets at most this much of it.
constexpr std::size_t kMostStack = 60 << 10;
// Bits of task_struct.__state and exit_state.
constexpr std::uint32_t kInterruptible = 1, kUninterruptible = 2, kStoppedBit = 4, kTracedBit = 8,
                        kExitBits = 0x30, kParked = 0x40, kNoLoad = 0x400, kFrozen = 0x8000;
constexpr std::uint32_t kExitDead = 0x10;
constexpr std::uint32_t kKernelThread = 0x200000;  // PF_KTHREAD

#if defined(__x86_64__)
// In words of user_regs_struct and of struct pt_regs: AX BX CX DX SI DI BP SP IP FLAGS CS SS R8..R15, as
// numbered by perf; DS, ES, FS and GS are left out.
constexpr std::uint64_t kRegisterMask = 0xff0fff;
constexpr std::size_t kRegisterWords[] = {10, 5,  11, 12, 13, 14, 4, 19, 16, 18,
                                          17, 20, 9,  8,  7,  6,  3, 2,  1,  0};
constexpr std::size_t kStackPlace = 7, kInstructionPlace = 8;  // in kRegisterWords
#elif defined(__aarch64__)
constexpr std::uint64_t kRegisterMask = (std::uint64_t{1} << 33) - 1;  // X0..X28, FP, LR, SP, PC
constexpr std::size_t kStackPlace = 31, kInstructionPlace = 32;
#else
#error "registers of this machine are not known"
#endif
constexpr std::size_t kRegisterCount = static_cast<std::size_t>(__builtin_popcountll(kRegisterMask));

std::vector<std::uint64_t> as_perf_numbers(std::span<const std::uint64_t> words) {
  std::vector<std::uint64_t> out;
#if defined(__x86_64__)
  for (const std::size_t word : kRegisterWords) out.push_back(word < words.size() ? words[word] : 0);
#else
  for (std::size_t word = 0; word < kRegisterCount; ++word)
    out.push_back(word < words.size() ? words[word] : 0);
#endif
  return out;
}

// `words`: of struct pt_regs, as PTRACE_GETREGSET gives them; on arm64 those up to the system call.
tacho_registers saved_registers(std::span<const std::uint64_t> words) {
  tacho_registers registers{};
  std::memcpy(&registers, words.data(), std::min(words.size_bytes(), sizeof registers));
  return registers;
}

bool are_32_bit(std::span<const std::uint64_t> words) {
  const tacho_registers registers = saved_registers(words);
  return TACHO_IS_32_BIT(&registers);
}

// The system call for which registers were saved; other entries into the kernel leave -1.
CurrentCall call_in(const bpf::ListedThread& thread) {
  constexpr long kMostCalls = 4096;
  CurrentCall call;
  const auto registers = std::bit_cast<tacho_registers>(thread.registers);
  const long number = TACHO_CALL_NUMBER(&registers);
  if (TACHO_IS_32_BIT(&registers) || number < 0 || number >= kMostCalls) return call;
  call.number = static_cast<std::int32_t>(number);
  const std::uint64_t arguments[] = {TACHO_CALL_ARGUMENTS(&registers)};
  std::ranges::copy(arguments, call.arguments);
  return call;
}

// Takes the stack from the stack pointer on, if it could be read.
void take_stack(ThreadStack& thread, Result<std::vector<std::byte>> bytes) {
  if (bytes) thread.stack = std::move(*bytes);
  if (!thread.stack.empty()) return;
  const int code = bytes ? 0 : bytes.error().code;
  thread.missing_reason = code == EPERM ? "its memory cannot be read: root, or CAP_SYS_PTRACE, may"
                          : code == ETIMEDOUT
                              ? "its stack is in memory that does not answer (of a file system that hangs?)"
                              : system_error("its stack cannot be read", code).what;
}

// Copies the stack. Registers are known.
void copy_stack(ThreadStack& thread, ForeignReader& reader) {
  take_stack(thread, reader.memory_of(thread.tid, thread.registers[kStackPlace], kMostStack));
}

ThreadState state_of(const bpf::ListedThread& thread) {
  const std::uint32_t state = thread.state;
  if ((state & kExitBits) != 0) return ThreadState::Zombie;
  if ((state & kFrozen) != 0) return ThreadState::Frozen;
  if ((state & kStoppedBit) != 0) return ThreadState::Stopped;
  if ((state & kTracedBit) != 0) return ThreadState::Traced;
  if ((state & kParked) != 0) return ThreadState::Parked;
  if ((state & kUninterruptible) != 0)
    return (state & kNoLoad) != 0 ? ThreadState::Idle : ThreadState::Uninterruptible;
  if ((state & kInterruptible) != 0) return ThreadState::Sleeping;
  return thread.is_on_cpu ? ThreadState::Running : ThreadState::Runnable;
}

// Threads of io_uring and vhost have memory, but never run user code.
bool has_user_code(const bpf::ListedThread& thread) {
  return thread.has_memory && (thread.flags & kKernelThread) == 0 && (thread.state & kExitBits) == 0 &&
         as_perf_numbers(thread.registers)[kInstructionPlace] != 0;
}

ThreadStack stack_of(const bpf::ListedThread& listed) {
  ThreadStack thread;
  thread.pid = listed.pid;
  thread.tid = listed.tid;
  thread.state = state_of(listed);
  thread.kernel = listed.kernel;
  if (!has_user_code(listed)) return thread;
  thread.registers = as_perf_numbers(listed.registers);
  thread.is_32_bit = are_32_bit(listed.registers);
  if (thread.state != ThreadState::Running) thread.call = call_in(listed);
  return thread;
}

std::string in_task(std::uint32_t pid, std::uint32_t tid, std::string_view file) {
  return fmt::format("/proc/{}/task/{}/{}", pid, tid, file);
}

std::uint32_t own_pid() { return static_cast<std::uint32_t>(::getpid()); }

// Copies the stacks of blocked threads.
class Copying {
 public:
  Copying(const bpf::ThreadList& list, ForeignReader& reader) : list_(list), reader_(reader) {}

  // One round: copies the stacks of blocked threads, and keeps each copy if its thread did not run meanwhile.
  // Threads that ended are left out.
  Result<> copy_round(std::vector<bpf::ListedThread> listed) {
    std::vector<Copied> copies;
    std::set<std::uint32_t> seen;
    for (const bpf::ListedThread& each : listed) {
      if (!is_wanted(each)) continue;
      seen.insert(each.tid);
      if (each.is_on_cpu) continue;
      Copied copy{stack_of(each), each.switches};
      if (!copy.thread.registers.empty()) copy_stack(copy.thread, reader_);
      copies.push_back(std::move(copy));
    }
    auto again = list_.read_threads();
    if (!again) return std::move(again.error());
    std::unordered_map<std::uint32_t, const bpf::ListedThread*> now;
    for (const bpf::ListedThread& each : *again) now.emplace(each.tid, &each);
    left_.clear();
    for (Copied& copy : copies) {
      const auto same = now.find(copy.thread.tid);
      if (same == now.end()) continue;  // it ended
      const bpf::ListedThread& then = *same->second;
      if (then.is_on_cpu || then.switches != copy.switches) continue;
      done_.insert(copy.thread.tid);
      threads_.push_back(std::move(copy.thread));
    }
    for (const std::uint32_t each : seen)
      if (const auto same = now.find(each); !done_.contains(each) && same != now.end())
        left_.push_back(*same->second);
    is_first_ = false;
    return Done{};
  }

  const std::vector<bpf::ListedThread>& left() const { return left_; }
  std::vector<ThreadStack> take() && { return std::move(threads_); }

 private:
  struct Copied {
    ThreadStack thread;
    std::uint64_t switches;
  };
  bool is_wanted(const bpf::ListedThread& thread) const {
    if (thread.pid == own_pid() || reader_.is_own(static_cast<pid_t>(thread.pid)) ||
        (thread.state & kExitDead) != 0)
      return false;
    if (is_first_) return true;
    return std::ranges::find(left_, thread.tid, &bpf::ListedThread::tid) != left_.end();
  }

  const bpf::ThreadList& list_;
  ForeignReader& reader_;
  std::vector<ThreadStack> threads_;
  std::set<std::uint32_t> done_;
  std::vector<bpf::ListedThread> left_;
  bool is_first_ = true;
};

// In a child of a ForeignReader: stops a thread and copies its registers and stack.
Result<std::vector<std::byte>> stop_and_read(format::Bytes argument) {
  constexpr milliseconds kPatience{100};
  const std::uint32_t tid = format::Cursor(argument).u32();
  auto stopped = StoppedThread::stop(static_cast<pid_t>(tid), kPatience);
  // It would stay attached to this process, and stop later with nobody to resume it.
  if (!stopped && stopped.error().code == ETIMEDOUT) ::_exit(0);
  if (!stopped) return std::move(stopped.error());
  const auto words = stopped->registers();
  if (!words) return words.error();
  const auto stack = read_memory(tid, as_perf_numbers(*words)[kStackPlace], kMostStack);
  format::ByteWriter out;
  out.u64(static_cast<std::uint64_t>(stopped->resume().count()))
      .u32(static_cast<std::uint32_t>(words->size()));
  for (const std::uint64_t word : *words) out.u64(word);
  out.u32(static_cast<std::uint32_t>(stack ? 0 : stack.error().code));
  if (stack) out.bytes(*stack);
  return std::move(out).take_bytes();
}

void copy_stopped(ThreadStack& thread, ForeignReader& reader) {
  format::ByteWriter argument;
  argument.u32(thread.tid);
  const std::string name = fmt::format("thread {}", thread.tid);
  const auto answer = reader.run_work(stop_and_read, argument.view(), name, name);
  if (!answer) {
    const int code = answer.error().code;
    thread.missing_reason = code == EIO ? name + " does not stop"
                            : code == ETIMEDOUT
                                ? name +
                                      " does not answer (it is in an execve, or its stack is in memory of "
                                      "a file system that hangs)"
                                : answer.error().what;
    return;
  }
  format::Cursor in(*answer);
  thread.paused = std::chrono::nanoseconds(in.u64());
  std::vector<std::uint64_t> words(in.u32());
  for (std::uint64_t& word : words) word = in.u64();
  thread.registers = as_perf_numbers(words);
  thread.is_32_bit = are_32_bit(words);
  thread.missing_reason.clear();
  const auto code = static_cast<int>(in.u32());
  if (code != 0)
    take_stack(thread, Error{"", code});
  else
    take_stack(thread, std::vector<std::byte>(in.rest().begin(), in.rest().end()));
}

Result<> stop_and_copy(std::span<ThreadStack*> threads, ForeignReader& reader,
                       const std::function<bool()>& stop) {
  for (ThreadStack* thread : threads)
    if (!stop()) copy_stopped(*thread, reader);
  return stop() ? Result<>(Error{"stopped by a signal", EINTR}) : Result<>(Done{});
}

// The fields of /proc/PID/stat after the name, which may contain anything. The first one is the state.
std::string_view fields_after_name(std::string_view stat) {
  const auto end = stat.rfind(") ");
  return end == std::string_view::npos ? std::string_view() : stat.substr(end + 2);
}

// The state letter of /proc/PID/stat.
ThreadState state_of_letter(char letter) {
  constexpr std::pair<char, ThreadState> kLetters[] = {
      {'R', ThreadState::Runnable}, {'D', ThreadState::Uninterruptible}, {'T', ThreadState::Stopped},
      {'t', ThreadState::Traced},   {'Z', ThreadState::Zombie},          {'X', ThreadState::Zombie},
      {'I', ThreadState::Idle},     {'P', ThreadState::Parked}};
  const auto row = std::ranges::find(kLetters, letter, &std::pair<char, ThreadState>::first);
  return row == std::end(kLetters) ? ThreadState::Sleeping : row->second;
}

bool is_kernel_thread(std::string_view fields) {
  constexpr int kFlagsField = 6;  // index after the state
  for (int i = 0; i < kFlagsField; ++i) take_until(fields, ' ');
  return (number_at<std::uint32_t>(fields) & kKernelThread) != 0;
}

// Addresses of kernel functions, read when the first stack needs them.
class KernelAddresses {
 public:
  std::uint64_t of(std::string_view function) {
    if (!is_read_) read();
    const auto found = places_.find(function);
    return found == places_.end() ? 0 : found->second;
  }

 private:
  void read() {
    is_read_ = true;
    each_kernel_function(
        text_of_file("/proc/kallsyms"),
        [this](std::string_view name, std::uint64_t address) { places_.emplace(name, address); });
  }
  bool is_read_ = false;
  std::map<std::string, std::uint64_t, std::less<>> places_;
};

// Without BPF: threads of /proc, stopped one by one.
Result<std::vector<ThreadStack>> threads_of_proc(const TargetTasks& tasks, ForeignReader& reader,
                                                 const std::function<bool()>& stop,
                                                 std::vector<std::string>& notes) {
  std::vector<ThreadStack> threads;
  std::vector<std::size_t> with_user_code;  // indices
  KernelAddresses kernel;
  bool has_kernel_stacks = false, has_sleepers = false;
  for (const int tid : tasks.threads) {
    ThreadStack thread;
    thread.tid = static_cast<std::uint32_t>(tid);
    const std::string status = text_of_file(fmt::format("/proc/{}/status", tid));
    const auto group = whole_number<std::uint32_t>(field_of_status(status, "Tgid"));
    if (!group) continue;  // it ended
    thread.pid = *group;
    if (thread.pid == own_pid() || reader.is_own(static_cast<pid_t>(thread.pid))) continue;
    const std::string stat = reader.text_of(in_task(thread.pid, thread.tid, "stat"));
    const std::string_view fields = fields_after_name(stat);
    if (fields.empty()) continue;
    thread.state = state_of_letter(fields.front());
    has_sleepers |= thread.state != ThreadState::Runnable;
    thread.kernel = parse_kernel_stack(reader.text_of(in_task(thread.pid, thread.tid, "stack")),
                                       [&](std::string_view function) { return kernel.of(function); });
    has_kernel_stacks |= !thread.kernel.empty();
    if (const auto line = parse_call_line(reader.text_of(in_task(thread.pid, thread.tid, "syscall")))) {
      thread.call = line->call;
      // For a thread that does not stop, only these registers are known.
      thread.registers.assign(kRegisterCount, 0);
      thread.registers[kStackPlace] = line->sp;
      thread.registers[kInstructionPlace] = line->pc;
    }
    if (is_kernel_thread(fields) || thread.state == ThreadState::Zombie)
      thread.registers.clear();
    else
      with_user_code.push_back(threads.size());
    threads.push_back(std::move(thread));
  }
  if (has_sleepers && !has_kernel_stacks)
    notes.emplace_back("stacks of the kernel are missing: /proc/PID/stack cannot be read (root may)");
  std::vector<ThreadStack*> to_stop;
  for (const std::size_t index : with_user_code) {
    ThreadStack& thread = threads[index];
    if (thread.state == ThreadState::Uninterruptible && !thread.registers.empty())
      copy_stack(thread, reader);  // ptrace cannot stop it
    else
      to_stop.push_back(&thread);
  }
  if (auto done = stop_and_copy(to_stop, reader, stop); !done) return std::move(done.error());
  return threads;
}

// System calls that may block, and whose first argument is a descriptor.
constexpr long kByDescriptor[] = {
    SYS_read,          SYS_write,    SYS_pread64,  SYS_pwrite64,  SYS_readv,      SYS_writev,  SYS_preadv,
    SYS_pwritev,       SYS_ioctl,    SYS_fsync,    SYS_fdatasync, SYS_flock,      SYS_fcntl,   SYS_ftruncate,
    SYS_fallocate,     SYS_fstat,    SYS_lseek,    SYS_close,     SYS_getdents64, SYS_sendto,  SYS_recvfrom,
    SYS_sendmsg,       SYS_recvmsg,  SYS_recvmmsg, SYS_sendmmsg,  SYS_accept,     SYS_accept4, SYS_connect,
    SYS_epoll_pwait,   SYS_sendfile, SYS_splice,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,    SYS_getdents,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_io_uring_enter
    SYS_io_uring_enter
#endif
};

std::string file_of(const ThreadStack& thread, ForeignReader& reader) {
  if (std::ranges::find(kByDescriptor, thread.call.number) == std::end(kByDescriptor)) return {};
  const std::string link = in_task(thread.pid, thread.tid,
                                   fmt::format("fd/{}", static_cast<std::int32_t>(thread.call.arguments[0])));
  std::string path = reader.link_of(link);
  path.resize(std::min<std::size_t>(path.size(), 512));
  return path;
}

struct Listing {
  bpf::ThreadList list;
  std::vector<bpf::ListedThread> first;
};
Result<Listing> list_threads(const Target& target, const TargetTasks& tasks) {
  std::vector<int> ids;
  tacho_thread_choice choice = TACHO_ALL_THREADS;
  if (target.watch == Watch::Processes) {
    choice = TACHO_THREADS_OF_PROCESSES;
    ids = tasks.processes;
  } else if (target.watch == Watch::Threads) {
    choice = TACHO_NAMED_THREADS;
    ids = tasks.threads;
  }
  if (choice != TACHO_ALL_THREADS) ids.push_back(::getpid());
  auto list = bpf::ThreadList::load(choice, ids);
  if (!list) return std::move(list.error());
  auto first = list->read_threads();
  if (!first) return std::move(first.error());
  return Listing{std::move(*list), std::move(*first)};
}

Result<std::vector<ThreadStack>> threads_of_list(Listing& listing, ForeignReader& reader,
                                                 const std::function<bool()>& stop) {
  // With fewer threads left a round is shorter, so fewer of them run during it.
  constexpr int kRounds = 8;
  Copying copying(listing.list, reader);
  if (auto done = copying.copy_round(std::move(listing.first)); !done) return std::move(done.error());
  for (int round = 1; round < kRounds && !copying.left().empty(); ++round) {
    if (stop()) return Error{"stopped by a signal", EINTR};
    std::this_thread::sleep_for(milliseconds(1));
    auto listed = listing.list.read_threads();
    if (!listed) return std::move(listed.error());
    if (auto done = copying.copy_round(std::move(*listed)); !done) return std::move(done.error());
  }
  std::vector<ThreadStack> busy;
  for (const bpf::ListedThread& each : copying.left()) {
    busy.push_back(stack_of(each));
    // A running thread has no kernel stack that could be read, and its saved registers are outdated.
    busy.back().kernel.clear();
    busy.back().call = {};
    busy.back().state = ThreadState::Running;
  }
  std::vector<ThreadStack*> to_stop;
  for (ThreadStack& thread : busy)
    if (!std::exchange(thread.registers, {}).empty()) to_stop.push_back(&thread);
  if (auto done = stop_and_copy(to_stop, reader, stop); !done) return std::move(done.error());
  std::vector<ThreadStack> threads = std::move(copying).take();
  std::ranges::move(busy, std::back_inserter(threads));
  return threads;
}

}  // namespace

std::uint64_t user_register_mask() { return kRegisterMask; }

std::optional<std::uint64_t> instruction_of(const ThreadStack& thread) {
  if (thread.registers.empty()) return std::nullopt;
  return thread.registers[kInstructionPlace];
}

std::vector<std::uint64_t> parse_kernel_stack(
    std::string_view lines, const std::function<std::uint64_t(std::string_view function)>& start_of) {
  std::vector<std::uint64_t> addresses;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    const auto name = line.find("] ");
    if (name == std::string_view::npos) continue;
    line.remove_prefix(name + 2);
    const auto plus = line.find("+0x");
    if (plus == std::string_view::npos) continue;
    if (const std::uint64_t start = start_of(line.substr(0, plus)); start != 0)
      addresses.push_back(start + number_at<std::uint64_t>(line.substr(plus + 3), 16));
  }
  return addresses;
}

namespace {

struct ReadThreads {
  std::vector<ThreadStack> threads;
  std::optional<bpf::ThreadList> list;  // nullopt: they were stopped
};
// The threads that exist now, by BPF or else by ptrace.
Result<ReadThreads> read_threads(const Target& target, Looking looking, ForeignReader& reader,
                                 const std::function<bool()>& stop, std::vector<std::string>& notes) {
  Target watched = target;
  if (target.watch == Watch::System) {
    watched.watch = Watch::Processes;
    watched.ids = RunningProcesses("/proc", 0).all();
  }
  const auto tasks = tasks_of(watched);
  if (!tasks) return tasks.error();
  for (const int gone : tasks->gone)
    if (target.watch != Watch::System) notes.push_back(fmt::format("there is no process or thread {}", gone));
  auto listing = looking == Looking::Stopping ? Result<Listing>(Error{""}) : list_threads(target, *tasks);
  if (listing) {
    auto threads = threads_of_list(*listing, reader, stop);
    if (!threads) return std::move(threads.error());
    return ReadThreads{std::move(*threads), std::move(listing->list)};
  }
  if (looking != Looking::Stopping)
    notes.push_back(
        fmt::format("threads are stopped one after another, and kernel stacks are those of /proc: {}",
                    listing.error().what));
  auto threads = threads_of_proc(*tasks, reader, stop, notes);
  if (!threads) return std::move(threads.error());
  return ReadThreads{std::move(*threads), std::nullopt};
}

// Copies the stack of a lock's owner while it has the lock, which may pass from thread to thread. `waiting`:
// a thread that waits for it. nullopt: it could not be caught.
std::optional<ThreadStack> owner_of_lock(const ThreadStack& waiting, const bpf::ThreadList& list,
                                         ForeignReader& reader, LockLooks& looks) {
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint32_t owner = looks.owner_now(waiting);
    auto listed = list.read_threads();
    if (!listed) return std::nullopt;
    std::erase_if(*listed, [owner](const bpf::ListedThread& each) { return each.tid != owner; });
    Copying copying(list, reader);
    if (owner == 0 || listed->empty() || !copying.copy_round(std::move(*listed))) continue;
    std::vector<ThreadStack> copied = std::move(copying).take();
    // It did not run while its stack was copied, so it had the lock all the time.
    if (!copied.empty() && looks.owner_now(waiting) == owner) return std::move(copied.front());
  }
  return std::nullopt;
}

// Reads the owners of locks again, whose stacks were copied before or after they had them.
void read_owners(std::vector<ThreadStack>& threads, const bpf::ThreadList& list, ForeignReader& reader,
                 LockLooks& looks, const std::function<bool()>& stop) {
  constexpr std::size_t kMostLocks = 16;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>>
      locks;  // indices of the waiting threads
  for (std::size_t i = 0; i < threads.size(); ++i)
    if (threads[i].lock.address != 0) locks[{threads[i].pid, threads[i].lock.address}].push_back(i);
  std::size_t count = 0;
  for (const auto& [lock, waiting] : locks) {
    if (++count > kMostLocks || stop()) return;
    auto owner = owner_of_lock(threads[waiting.front()], list, reader, looks);
    if (!owner) continue;
    for (const std::size_t index : waiting) threads[index].lock.owner = owner->tid;
    const auto known = std::ranges::find(threads, owner->tid, &ThreadStack::tid);
    if (known == threads.end()) continue;
    (void)looks.first({&*owner, 1});
    looks.watch(owner->tid);
    *known = std::move(*owner);
  }
}

// Fills the locks for which threads wait, and adds the owners that are missing, which may wait in turn.
Result<> add_locks(ThreadsNow& now, const bpf::ThreadList* list, Looking looking, ForeignReader& reader,
                   const std::function<bool()>& stop) {
  LockLooks looks(reader);
  constexpr int kDeepestOwner = 16;  // owners of owners
  std::vector<int> missing = looks.first(now.threads);
  for (int depth = 0; depth < kDeepestOwner && !missing.empty() && !stop(); ++depth) {
    std::vector<std::string> known;  // notes, said already
    auto owners = read_threads({.watch = Watch::Threads, .ids = missing}, looking, reader, stop, known);
    if (!owners) break;  // they ended
    missing = looks.first(owners->threads);
    std::ranges::move(owners->threads, std::back_inserter(now.threads));
  }
  if (list != nullptr) read_owners(now.threads, *list, reader, looks, stop);
  now.between_looks = looks.second(now.threads, stop);
  return stop() ? Result<>(Error{"stopped by a signal", EINTR}) : Result<>(Done{});
}

}  // namespace

Result<ThreadsNow> threads_now(const Target& target, Looking looking,
                               const std::shared_ptr<ForeignReader>& reader,
                               const std::function<bool()>& stop) {
  ThreadsNow out;
  auto threads = read_threads(target, looking, *reader, stop, out.notes);
  if (!threads) return std::move(threads.error());
  out.threads = std::move(threads->threads);
  const bpf::ThreadList* const list = threads->list ? &*threads->list : nullptr;
  if (auto done = add_locks(out, list, looking, *reader, stop); !done) return std::move(done.error());
  for (ThreadStack& each : out.threads) each.call.file = file_of(each, *reader);
  std::ranges::sort(out.threads, {}, [](const ThreadStack& each) { return std::pair(each.pid, each.tid); });
  for (const ThreadStack& each : out.threads)
    if (out.processes.empty() || out.processes.back() != each.pid) out.processes.push_back(each.pid);
  return out;
}

}  // namespace tacho::record
