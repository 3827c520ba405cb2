#include "sandbox/policy.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "format/base/file.h"

namespace tacho::sandbox {
namespace {

// System calls for reading files, memory, threads and time. Any other call fails with ENOSYS.
constexpr std::array kReadFiles = {
    SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(readv), SCMP_SYS(preadv), SCMP_SYS(lseek), SCMP_SYS(close),
    SCMP_SYS(close_range), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
    SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
    SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getdents64), SCMP_SYS(getcwd),
    SCMP_SYS(getxattr), SCMP_SYS(dup), SCMP_SYS(fadvise64), SCMP_SYS(readahead), SCMP_SYS(write),
    SCMP_SYS(writev),
    // sanitizers test with a pipe whether memory is readable
    SCMP_SYS(pipe), SCMP_SYS(pipe2),
    // memory
    SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
    SCMP_SYS(mincore), SCMP_SYS(msync), SCMP_SYS(membarrier),
    // threads; clone() has a rule of its own
    SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu), SCMP_SYS(exit), SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall), SCMP_SYS(arch_prctl),
    // handling of its own signals; tgkill() has a rule of its own
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    // ids and clocks
    SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(uname),
    SCMP_SYS(sysinfo), SCMP_SYS(getrandom), SCMP_SYS(getrusage), SCMP_SYS(times), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
    SCMP_SYS(time), SCMP_SYS(poll), SCMP_SYS(ppoll)};

// Policy::WriteOutput: writes an open file at offsets, and syncs it.
constexpr std::array kWriteOutput = {SCMP_SYS(pwrite64), SCMP_SYS(ftruncate), SCMP_SYS(fsync),
                                     SCMP_SYS(fdatasync)};

// Policy::Trials.
constexpr std::array kTrials = {SCMP_SYS(wait4), SCMP_SYS(alarm)};

// Policy::Servers.
constexpr std::array kServers = {
    SCMP_SYS(socket),      SCMP_SYS(socketpair),    SCMP_SYS(connect),     SCMP_SYS(bind),
    SCMP_SYS(shutdown),    SCMP_SYS(sendto),        SCMP_SYS(sendmsg),     SCMP_SYS(sendmmsg),
    SCMP_SYS(recvfrom),    SCMP_SYS(recvmsg),       SCMP_SYS(recvmmsg),    SCMP_SYS(getsockopt),
    SCMP_SYS(setsockopt),  SCMP_SYS(getsockname),   SCMP_SYS(getpeername), SCMP_SYS(select),
    SCMP_SYS(pselect6),    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),   SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),      SCMP_SYS(open),        SCMP_SYS(openat),
    SCMP_SYS(openat2),     SCMP_SYS(mkdir),         SCMP_SYS(mkdirat),     SCMP_SYS(rename),
    SCMP_SYS(renameat),    SCMP_SYS(renameat2),     SCMP_SYS(link),        SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),    SCMP_SYS(rmdir),         SCMP_SYS(chmod),       SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),    SCMP_SYS(utime),         SCMP_SYS(utimes),      SCMP_SYS(utimensat),
    SCMP_SYS(ftruncate),   SCMP_SYS(fsync),         SCMP_SYS(fdatasync),   SCMP_SYS(umask),
    SCMP_SYS(pwrite64),    SCMP_SYS(fallocate),     SCMP_SYS(getresuid),   SCMP_SYS(getresgid),
    SCMP_SYS(getpgrp),     SCMP_SYS(prlimit64),     SCMP_SYS(getrlimit)};

constexpr rlim_t kMostProcessorTime = 24 * 60 * 60;  // seconds, of all threads
constexpr rlim_t kMemoryBesides = rlim_t{4} << 30;   // bytes, besides half of the machine's memory

// Landlock rights that the headers here may not have.
constexpr std::uint64_t kMayTruncate = 1U << 14;  // since its third version (Linux 6.2)
constexpr int kKnowsTruncate = 3;

struct ReleaseFilter {
  void operator()(scmp_filter_ctx filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, ReleaseFilter>;

// Allows a system call if all `conditions` on its arguments hold. One that this architecture does not have
// needs no rule.
template <class... Conditions>
void allow(const Filter& filter, int call, Conditions... conditions) {
  (void)seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...);
}

void allow_all(const Filter& filter, std::span<const int> calls) {
  for (const int call : calls) allow(filter, call);
}

// Allows some commands of ioctl() or fcntl().
void allow_commands(const Filter& filter, int call, std::initializer_list<scmp_datum_t> commands) {
  for (const scmp_datum_t command : commands) allow(filter, call, SCMP_A1(SCMP_CMP_EQ, command));
}

// Allows openat() for reading. The flags of openat2() are in memory; callers fall back to openat().
void allow_opening(const Filter& filter, bool is_writing_forbidden) {
  constexpr scmp_datum_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC;
  allow(filter, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, kWrites, 0));
  allow(filter, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, kWrites, 0));
  if (is_writing_forbidden) allow(filter, SCMP_SYS(openat2));
}

// Allows system calls with some arguments only.
void allow_in_part(const Filter& filter) {
  // Threads, but no processes. A filter cannot read the flags of clone3(), which are in memory; it returns
  // ENOSYS, and the C library falls back to clone().
  allow(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  allow_commands(filter, SCMP_SYS(ioctl), {TCGETS, FS_IOC_GETVERSION});
  allow(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  allow(filter, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0));
  // Not F_SETOWN and the like, with which a file can send signals to any process.
  allow_commands(filter, SCMP_SYS(fcntl), {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_OFD_GETLK});
  allow(filter, SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFL), SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, 0));
  // For abort().
  allow(filter, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid())));
}

Result<> load_filter(Policy policy, bool is_writing_forbidden) {
  const Filter filter(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)));
  if (!filter) return system_error("seccomp", ENOMEM);
  // The default kills the calling thread alone, and a process that lost a thread may wait for it for ever.
  if (const int code = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
      code != 0)
    return system_error("seccomp", -code);
  allow_all(filter, kReadFiles);
  allow_in_part(filter);
  if (policy == Policy::WriteOutput) allow_all(filter, kWriteOutput);
  if (policy == Policy::Trials || policy == Policy::Servers) {
    // fork(): clone() without flags for sharing or namespaces.
    constexpr scmp_datum_t kFork = SIGCHLD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    allow(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_EQ, kFork));
    allow_all(filter, kTrials);
  }
  if (policy == Policy::MemoryFiles || policy == Policy::Servers) allow(filter, SCMP_SYS(memfd_create));
  if (policy == Policy::Servers) {
    allow_commands(filter, SCMP_SYS(fcntl), {F_SETLK, F_SETLKW, F_GETLK});
    allow_commands(filter, SCMP_SYS(ioctl), {FIONREAD, FIONBIO});
    allow_all(filter, kServers);
  } else {
    allow_opening(filter, is_writing_forbidden);
  }
  if (const int code = seccomp_load(filter.get()); code != 0) return system_error("seccomp", -code);
  return Done{};
}

// A Landlock ruleset that handles every right to change a file or folder, and allows none; reading is not
// handled. True when no way is left to change a file.
bool forbid_changes() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  const bool knows_truncate = version >= kKnowsTruncate;
  const landlock_ruleset_attr rules{
      .handled_access_fs =
          LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
          LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
          LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
          LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | (knows_truncate ? kMayTruncate : 0)};
  const format::Fd set(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0)));
  return set && ::syscall(SYS_landlock_restrict_self, set.get(), 0) == 0 && knows_truncate;
}

// Drops all capabilities but those for reading files of every user, and kernel symbols if it needs them.
Result<> keep_reading_rights(KernelSymbols symbols) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return system_error("capget", errno);
  const std::array<std::uint32_t, _LINUX_CAPABILITY_U32S_3> kept = {
      1U << CAP_DAC_READ_SEARCH, symbols == KernelSymbols::Shown ? CAP_TO_MASK(CAP_SYSLOG) : 0U};
  for (std::size_t word = 0; word < data.size(); ++word) {
    data.at(word).effective &= kept.at(word);
    data.at(word).permitted &= kept.at(word);
    data.at(word).inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, data.data()) != 0) return system_error("capset", errno);
  return Done{};
}

// Descriptors named on the command line: "/dev/fd/63", as a shell makes it of <(zcat x.data.gz).
std::vector<int> named_descriptors() {
  std::vector<int> named;
  const auto words = format::read_file("/proc/self/cmdline");
  const std::string_view text = words ? format::as_text(*words) : std::string_view();
  if (text.find("/dev/stdin") != std::string_view::npos) named.push_back(STDIN_FILENO);
  constexpr std::string_view kFolder = "/fd/";
  for (std::size_t at = 0; (at = text.find(kFolder, at)) != std::string_view::npos;) {
    at += kFolder.size();
    int number = -1;
    if (std::from_chars(text.data() + at, text.data() + text.size(), number).ec == std::errc())
      named.push_back(number);
  }
  return named;
}

bool close_all(unsigned first, unsigned last) {
  if (::close_range(first, last, 0) == 0) return true;
  if (errno != ENOSYS) return false;
  // Before Linux 5.9: one by one.
  constexpr unsigned kMost = 1U << 20;
  rlimit limit{kMost, kMost};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<unsigned>(std::min<rlim_t>(limit.rlim_max, kMost));
  for (; first <= last && first < end; ++first) ::close(static_cast<int>(first));
  return true;
}

// Closes all other descriptors: the parent's, and those with which the program was started. Standard input
// and output become O_PATH descriptors, so that no file gets their numbers.
Result<> close_all_but(std::span<const int> kept) {
  std::vector<int> stay = named_descriptors();
  stay.insert(stay.end(), kept.begin(), kept.end());
  const format::Fd nothing(::open("/", O_PATH | O_CLOEXEC));
  for (const int taken : {STDIN_FILENO, STDOUT_FILENO})
    if (std::ranges::find(stay, taken) == stay.end() && ::dup2(nothing.get(), taken) < 0)
      return system_error("closing standard input and output", errno);
  std::erase_if(stay, [](int one) { return one <= STDERR_FILENO; });
  std::ranges::sort(stay);
  unsigned first = STDERR_FILENO + 1;
  for (const int one : stay) {
    const auto next = static_cast<unsigned>(one);
    if (next > first && !close_all(first, next - 1)) return system_error("close_range", errno);
    first = std::max(first, next + 1);
  }
  if (!close_all(first, ~0U)) return system_error("close_range", errno);
  return Done{};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kHasShadow = true;
#else
constexpr bool kHasShadow = false;
#endif
#else
constexpr bool kHasShadow = false;
#endif

// Sets the resource limits. No file is mapped whole, so RLIMIT_AS bounds the memory that the process really
// uses.
void limit_resources() {
  // A core dump would hold the capture's contents. With a limit of 1 byte the kernel writes none; with 0 it
  // would still start the program of core_pattern.
  const rlimit none{1, 1};
  (void)::setrlimit(RLIMIT_CORE, &none);
  const auto limit = [](auto resource, rlim_t most) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) return;
    now.rlim_max = std::min(now.rlim_max, most);
    now.rlim_cur = std::min(now.rlim_cur, most);
    (void)::setrlimit(resource, &now);
  };
  limit(RLIMIT_CPU, kMostProcessorTime);
  const rlim_t pages = static_cast<rlim_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  const rlim_t page = static_cast<rlim_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  if (!kHasShadow) limit(RLIMIT_AS, pages * page / 2 + kMemoryBesides);
}

}  // namespace

Result<> confine(Policy policy, KernelSymbols symbols, std::span<const int> kept) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_error("no_new_privs", errno);
  if (auto done = close_all_but(kept); !done) return done;
  limit_resources();
  if (auto done = keep_reading_rights(symbols); !done) return done;
  return load_filter(policy, policy != Policy::Servers && forbid_changes());
}

}  // namespace tacho::sandbox
