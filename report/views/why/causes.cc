#include "report/views/why/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::pair<Cause, std::string_view> kNames[] = {
    {Cause::Cpu, "cpu"},
    {Cause::Spin, "spin"},
    {Cause::Syscall, "syscall"},
    {Cause::Fork, "fork"},
    {Cause::Runnable, "runnable"},
    {Cause::Throttled, "throttled"},
    {Cause::Lock, "lock"},
    {Cause::Condition, "condition"},
    {Cause::KernelLock, "kernel lock"},
    {Cause::Disk, "disk"},
    {Cause::Network, "network"},
    {Cause::Fault, "fault"},
    {Cause::Child, "child"},
    {Cause::Timer, "timer"},
    {Cause::Pipe, "pipe"},
    {Cause::Stopped, "stopped"},
    {Cause::Other, "other"},
    {Cause::IdlePoll, "poll"},
    {Cause::IdleSocket, "socket"},
    {Cause::IdleCondition, "condition"},
    {Cause::IdleInput, "input"},
    {Cause::IdleSignal, "signal"},
    {Cause::IdleChild, "child"},
    {Cause::IdleTimer, "timer"},
    {Cause::IdleKernel, "kernel thread"},
    {Cause::Unknown, "unknown"},
};

// Modules of the C library.
constexpr std::string_view kOfC[] = {"libc.so", "libc-",   "libpthread", "ld-linux",
                                     "ld-musl", "libm.so", "[vdso]",     "librt.so"};
// Other modules without code of programs. Interpreters are among them: a function that they run has a name
// only if they tell it (perf maps).
constexpr std::string_view kLibraries[] = {"libstdc++",   "libgcc_s",  "libc++",  "libuv.so",
                                           "libjemalloc", "libpython", "python3", "libnode",
                                           "libjvm",      "libruby",   "libperl", "libsqlite3"};
// Beginnings of functions of languages' libraries, in any module.
constexpr std::string_view kRuntimes[] = {
    "std::",    "__gnu_cxx::",   "core::",         "alloc::", "<std::", "<core::", "<alloc::", "parking_lot",
    "tokio::",  "uv_",           "uv__",           "_Py",     "Py",     "node::",  "v8::",     "Builtins_",
    "sqlite3_", "pthread_spin_", "__pthread_spin_"};
// First elements of the import paths of Go's own packages: "os" of "os/exec.(*Cmd).Run".
constexpr std::string_view kGoPackages[] = {
    "bufio",   "bytes", "compress", "container", "context", "crypto",   "database", "encoding", "errors",
    "fmt",     "hash",  "html",     "image",     "index",   "internal", "io",       "log",      "math",
    "mime",    "net",   "os",       "path",      "reflect", "regexp",   "runtime",  "sort",     "strconv",
    "strings", "sync",  "syscall",  "text",      "time",    "unicode",  "vendor"};
// What a compiler appends to names of parts of functions: "sort.part.0" is one of C.
constexpr std::string_view kPartsOfFunctions[] = {"part.", "constprop.", "isra.",
                                                  "cold",  "lto_priv.",  "llvm."};

constexpr std::string_view kNoName = "[unknown]";

bool begins_with_one(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view one) { return name.starts_with(one); });
}

bool is_of_go(std::string_view name) {
  const std::size_t end = name.find_first_of("./");
  return end != std::string_view::npos &&
         std::ranges::find(kGoPackages, name.substr(0, end)) != std::end(kGoPackages) &&
         !begins_with_one(name.substr(end + 1), kPartsOfFunctions);
}

// Of Python's and node's own modules, as perf maps name them:
// "py::Thread.join:/usr/lib/python3.12/threading.py", "JS:*spawnSync node:child_process:1:2".
bool is_of_interpreter(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return (name.starts_with("py::") && (has(":<frozen ") || has("/lib/python"))) ||
         (name.starts_with("JS:") && has(" node:"));
}

bool is_of_c(const Function& function) {
  return function.module != nullptr && begins_with_one(function.module->short_name, kOfC);
}

bool is_library(const Function& function) {
  const std::string_view module = function.module == nullptr ? "" : function.module->short_name;
  return is_of_c(function) || begins_with_one(module, kLibraries) || module == "node" ||
         begins_with_one(function.name(), kRuntimes) || is_of_go(function.name()) ||
         is_of_interpreter(function.name());
}

// A function of the program itself.
bool is_own(const NamedFrame& frame) {
  return !frame.is_kernel && !frame.is_library && frame.name != kNoName;
}

bool any_kernel(std::span<const NamedFrame> frames, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(frames, [&](const NamedFrame& frame) {
    return frame.is_kernel && begins_with_one(frame.name, std::span(beginnings.begin(), beginnings.size()));
  });
}

bool any_user(std::span<const NamedFrame> frames, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(frames, [&](const NamedFrame& frame) {
    return !frame.is_kernel && begins_with_one(frame.name, std::span(beginnings.begin(), beginnings.size()));
  });
}

// A wait for a futex whose owner is not known: functions of the C library, of C++, Rust and Go say what it
// is built into. The innermost frame that says something decides.
Cause futex_cause(std::span<const NamedFrame> frames) {
  constexpr std::string_view kConditions[] = {
      "cond_wait",     "cond_timedwait", "cond_clockwait", "sem_wait", "sem_timedwait",
      "sem_clockwait", "join",           "condvar",        "Condvar",  "condition_variable",
      "future",        "notesleep",      "findRunnable",   "stopm",    "thread::park",
      "Parker",        "PyCOND",         "drop_gil",       "epoll",    "latch",
      "barrier"};
  constexpr std::string_view kLocks[] = {"mutex",    "Mutex",     "lll_lock", "rwlock",  "RwLock",
                                         "spinlock", "lock_slow", "lock2",    "LockSlow"};
  // Python's locks and monitors of Java are built of conditions and semaphores.
  if (any_user(frames, {"take_gil", "rlock_acquire", "ObjectMonitor::enter", "ObjectMonitor::Enter"}))
    return Cause::Lock;
  for (const NamedFrame& frame : frames) {
    if (frame.is_kernel) continue;
    const auto has = [&](std::string_view part) { return frame.name.find(part) != std::string_view::npos; };
    if (std::ranges::any_of(kConditions, has)) return Cause::IdleCondition;
    if (std::ranges::any_of(kLocks, has)) return Cause::Lock;
  }
  return Cause::IdleCondition;
}

Cause by_object(const WaitFacts& facts, std::span<const NamedFrame> frames) {
  switch (facts.object) {
    case WaitObject::Mutex:
    case WaitObject::RwLock:
      return Cause::Lock;
    case WaitObject::Futex:
      return futex_cause(frames);
    case WaitObject::Connected:
      return Cause::Network;
    case WaitObject::Accepted:
      // A full send buffer: the other side does not read.
      return any_kernel(frames, {"sk_stream_wait_memory", "sock_alloc_send"}) ? Cause::Network
                                                                              : Cause::IdleSocket;
    case WaitObject::Listening:
      return Cause::IdleSocket;
    case WaitObject::Epoll:
      return Cause::IdlePoll;
    default:
      return Cause::Unknown;
  }
}

Cause by_state(WallState state, std::span<const NamedFrame> frames) {
  switch (state) {
    case WallState::Io:
      return Cause::Disk;
    case WallState::Lock:
      return any_kernel(frames, {"futex_", "__futex_", "do_futex"}) ? futex_cause(frames) : Cause::KernelLock;
    case WallState::Sleep:
      // Another connection has the lock of the database: it is tried again later.
      if (any_user(frames, {"sqlite3_"})) return Cause::Lock;
      // Go's thread that looks after the others sleeps between two looks.
      return any_user(frames, {"runtime.sysmon"}) ? Cause::IdleTimer : Cause::Timer;
    case WallState::Poll:
      return Cause::IdlePoll;
    case WallState::Network:
      return any_kernel(frames, {"inet_csk_accept", "unix_accept"}) ? Cause::IdleSocket : Cause::Network;
    case WallState::Pipe:
      return any_kernel(frames, {"pipe_write", "anon_pipe_write"}) ? Cause::Pipe : Cause::IdleInput;
    case WallState::Child:
      return Cause::Child;
    case WallState::Idle:
      return Cause::IdleKernel;
    case WallState::Unknown:
    case WallState::Before:
      return Cause::Unknown;
    default:
      return Cause::Other;
  }
}

}  // namespace

std::string_view name_of(Cause cause) {
  return std::ranges::find(kNames, cause, &std::pair<Cause, std::string_view>::first)->second;
}

// Without the symbol's version and, of JavaScript, without the character that says how it is compiled now:
// "JS:*hash file:///a.js:1:2", "JS:~hash ..." are one function.
std::string_view NamedChains::name_of(const Function& function) {
  if (function.name().empty()) return kNoName;
  constexpr std::string_view kScript = "JS:", kHow = "*~^+";
  std::string_view name = function.name();
  name = name.substr(0, std::min(name.find("@@"), name.find("@GLIBC")));
  if (name.size() <= kScript.size() || !name.starts_with(kScript) ||
      kHow.find(name[kScript.size()]) == std::string_view::npos)
    return name;
  return *changed_names_.emplace(fmt::format("{}{}", kScript, name.substr(kScript.size() + 1))).first;
}

const std::vector<NamedFrame>& NamedChains::at(LocationId location) {
  const auto [known, is_new] = known_.try_emplace(location);
  if (!is_new) return known->second;
  const bool is_kernel = session_->resolver().location(location).cpumode == abi::kCpumodeKernel;
  for (const FunctionId id : functions_.of_frame(location)) {
    const Function& function = functions_[id];
    known->second.push_back(
        {name_of(function), is_kernel, !is_kernel && is_library(function), !is_kernel && is_of_c(function)});
  }
  return known->second;
}

std::span<const NamedFrame> NamedChains::frames(std::span<const LocationId> locations) {
  answer_.clear();
  for (const LocationId location : locations) {
    const auto& named = at(location);
    answer_.insert(answer_.end(), named.begin(), named.end());
  }
  return answer_;
}

std::span<const NamedFrame> NamedChains::frames(const Stack& stack) { return frames(stack.frames); }

bool NamedChains::is_of_program(LocationId location) { return std::ranges::any_of(at(location), is_own); }

std::string_view NamedChains::code_at(LocationId location) {
  const Function& function = functions_[functions_.of_frame(location).back()];
  const bool has_file = function.module != nullptr && function.module->kind == symbolize::ModuleKind::User &&
                        session_->resolver().location(location).cpumode == abi::kCpumodeUser;
  return has_file && function.has_symbol() ? function.name() : std::string_view();
}

std::string NamedChains::variable(LocationId id, std::uint64_t before) {
  const Location& location = session_->resolver().location(id);
  const symbolize::Frame& frame = session_->resolver().frame(location);
  const std::uint64_t offset = frame.shown_address - frame.function_start - before;
  if (frame.function.empty() || !frame.is_data || frame.shown_address < frame.function_start + before)
    return fmt::format("{:#x}", location.ip.value - before);
  return offset == 0 ? std::string(frame.function) : fmt::format("{}+{:#x}", frame.function, offset);
}

std::string NamedChains::condition(LocationId id) {
  constexpr std::uint64_t kBytes = 48;  // of a pthread_cond_t, the larger one
  if (id == kNo<LocationId>) return {};
  const symbolize::Frame& frame = session_->resolver().frame(session_->resolver().location(id));
  if (frame.function.empty() || !frame.is_data) return {};
  const std::uint64_t offset = frame.shown_address - frame.function_start;
  return offset < kBytes ? std::string(frame.function) : fmt::format("{}+{:#x}", frame.function, offset);
}

std::string_view own_function(std::span<const NamedFrame> frames) {
  const auto of_program = std::ranges::find_if(frames, is_own);
  if (of_program != frames.end()) return of_program->name;
  const auto not_of_c = std::ranges::find_if(
      frames, [](const NamedFrame& one) { return !one.is_kernel && !one.is_of_c && one.name != kNoName; });
  if (not_of_c != frames.end()) return not_of_c->name;
  const auto user = std::ranges::find_if(frames, [](const NamedFrame& one) { return !one.is_kernel; });
  if (user != frames.end()) return user->name;
  return frames.empty() ? std::string_view() : frames.front().name;
}

std::vector<std::string> shown_chain(std::span<const NamedFrame> frames) {
  std::vector<std::string> names;
  const bool has_own = std::ranges::any_of(frames, is_own);
  bool is_inner = true;  // inside of the innermost function of the program
  for (const NamedFrame& frame : frames) {
    if (frame.is_kernel) continue;
    is_inner = is_inner && !is_own(frame);
    const bool is_first_library = is_inner && (names.empty() || !has_own);
    const bool is_repeated = frame.name == kNoName && !names.empty() && names.back() == kNoName;
    if ((is_own(frame) || !has_own || is_first_library) && !is_repeated)
      names.emplace_back(frame.name);
    else if (is_inner)
      names.back() = frame.name;
  }
  std::ranges::reverse(names);
  return names;
}

std::string_view call_of(std::span<const NamedFrame> frames) {
  for (const std::string_view beginning : {"__x64_sys_", "__do_sys_", "__se_sys_", "__arm64_sys_", "ksys_"})
    for (const NamedFrame& frame : frames)
      if (frame.is_kernel && frame.name.starts_with(beginning)) return frame.name.substr(beginning.size());
  return {};
}

Cause cause_of(WallState state, std::span<const NamedFrame> frames, const WaitFacts& facts) {
  if (state == WallState::OnCpu)
    return any_kernel(frames, {"asm_exc_page_fault", "exc_page_fault"}) ? Cause::Fault : Cause::Cpu;
  if (state == WallState::Runnable) return facts.is_throttled ? Cause::Throttled : Cause::Runnable;
  if (facts.is_stopped) return Cause::Stopped;
  if (any_kernel(frames, {"asm_exc_page_fault", "exc_page_fault", "handle_mm_fault"})) return Cause::Fault;
  if (any_kernel(frames, {"sigsuspend", "__x64_sys_rt_sigsuspend", "__x64_sys_pause", "do_sigtimedwait"}))
    return Cause::IdleSignal;
  const Cause known = by_object(facts, frames);
  if (known != Cause::Unknown) return known;
  const bool has_reason = state != WallState::Blocked && state != WallState::NoReason;
  if (!has_reason && frames.empty() && facts.call.empty()) return Cause::Unknown;
  const Cause cause = by_state(state, frames);
  const bool is_of_kernel = !frames.empty() && frames.back().is_kernel && any_kernel(frames, {"kthread"});
  return cause == Cause::Other && is_of_kernel ? Cause::IdleKernel : cause;
}

}  // namespace tacho::report
