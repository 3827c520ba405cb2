#include "bpf/program_trial.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "bpf/object/btf_schema.h"
#include "bpf/object/object.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"

namespace tacho::bpf {

namespace {

// r0 = 0; exit
constexpr std::array<bpf_insn, 2> kNothing{
    {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
     {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}}};

// The attach target: a function that the kernel has for tests, so attaching has no cost.
constexpr const char* kFunction = "bpf_fentry_test1";
constexpr const char* kTracepoint = "sched_process_exit";

struct Row {
  std::string_view kind, usage;
  bpf_prog_type type;
  bpf_attach_type attach;
  const char* target;  // in the kernel's BTF; null: none
  bool is_attached;    // loading alone is not a sufficient test
};
constexpr auto kNone = static_cast<bpf_attach_type>(0);
constexpr Row kRows[] = {
    {"perf_event", "programs on the samples of clocks", BPF_PROG_TYPE_PERF_EVENT, kNone, nullptr, false},
    {"tracepoint", "SEC(\"tp/...\")", BPF_PROG_TYPE_TRACEPOINT, kNone, nullptr, false},
    {"raw_tracepoint", "SEC(\"raw_tp/...\")", BPF_PROG_TYPE_RAW_TRACEPOINT, kNone, nullptr, false},
    {"kprobe", "SEC(\"kprobe/...\") and uprobes", BPF_PROG_TYPE_KPROBE, kNone, nullptr, false},
    {"tp_btf", "SEC(\"tp_btf/...\")", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, kTracepoint, false},
    {"fentry", "SEC(\"fentry/...\"), SEC(\"fexit/...\")", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, kFunction,
     true},
};

constexpr int kNotSupported = 524;  // the kernel's ENOTSUPP, which has no text: arm64's answer before 6.4

std::string text_of(int code) {
  return code == kNotSupported ? "this kernel does not support it (ENOTSUPP)" : std::strerror(code);
}

std::string refusal_of(const Row& row) {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = row.attach;
  if (row.target != nullptr) {
    const int id = libbpf_find_vmlinux_btf_id(row.target, row.attach);
    if (id < 0) return "the kernel's BTF does not have it: " + text_of(-id);
    options.attach_btf_id = static_cast<__u32>(id);
  }
  const format::Fd program(
      bpf_prog_load(row.type, "tacho_trial", "GPL", kNothing.data(), kNothing.size(), &options));
  if (!program) return text_of(errno);
  if (!row.is_attached) return {};
  const format::Fd link(bpf_raw_tracepoint_open(nullptr, program.get()));
  return link ? std::string() : "it loads, but cannot be attached: " + text_of(errno);
}

}  // namespace

std::vector<ProgramTrial> try_programs() {
  const LibbpfLog quiet;
  std::vector<ProgramTrial> trials;
  for (const Row& row : kRows) trials.push_back({row.kind, row.usage, refusal_of(row)});
  return trials;
}

namespace {

constexpr rlim_t kMaxSeconds = 10;  // of CPU time, and of wall time
constexpr rlim_t kMemory = rlim_t{2} << 30;
constexpr rlim_t kMostMemoryFile = rlim_t{64} << 20;
constexpr uid_t kNobody = 65534;
constexpr int kLastDescriptor = 1 << 16;

constexpr sock_filter load_word(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(offset));
}
// Jumps over `skip` instructions if the system call is `number`.
constexpr sock_filter skip_if(long number, int skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(number), static_cast<__u8>(skip), 0);
}
constexpr sock_filter result(unsigned what) { return BPF_STMT(BPF_RET | BPF_K, what); }

// The seccomp filter: bpf(2) returns 0, which is success and also a descriptor; close(0) does nothing, so
// that 0 stays valid. System calls that reach other processes, devices or the network are refused.
bool filter_system_calls() {
  constexpr std::size_t kLow = std::endian::native == std::endian::little ? 0 : 4;
  const sock_filter program[] = {
      load_word(offsetof(seccomp_data, nr)),
      skip_if(SYS_bpf, 11),
      skip_if(SYS_perf_event_open, 11),
      skip_if(SYS_socket, 10),
      skip_if(SYS_execve, 9),
      skip_if(SYS_kill, 8),
      skip_if(SYS_ptrace, 7),
      skip_if(SYS_clone, 6),
      skip_if(SYS_ioctl, 5),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 2),
      load_word(offsetof(seccomp_data, args) + kLow),
      skip_if(STDIN_FILENO, 1),
      result(SECCOMP_RET_ALLOW),
      result(SECCOMP_RET_ERRNO),
      result(SECCOMP_RET_ERRNO | EPERM),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), const_cast<sock_filter*>(program)};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

// Makes this child harmless: another user, no descriptors, and no new files (only memfds, for an object that
// is linked).
void drop_rights(rlim_t most_written) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int number = 0; number <= STDERR_FILENO; ++number) ::dup2(nothing, number);
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) != 0)
#endif
    for (int number = STDERR_FILENO + 1; number < kLastDescriptor; ++number) ::close(number);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kMaxSeconds);
  limit(RLIMIT_FSIZE, most_written);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory exceeds the limit
  limit(RLIMIT_AS, kMemory);
#endif
  if (::geteuid() == 0) {
    (void)::setgroups(0, nullptr);
    (void)::setresgid(kNobody, kNobody, kNobody);
    // Not dumpable: other processes of that user must not read this memory, a copy of root's. Its own
    // /proc/self/fd, which libbpf's linker needs, can still be opened.
    (void)::setresuid(kNobody, kNobody, kNobody);
  }
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child: does all that the parent will do with the object, and exits.
[[noreturn]] void open_and_exit(format::Bytes elf, const std::string& name) {
  const WalkUse use = walk_use_of(elf);
  const bool is_linked = use.in_front_of_events || use.in_payloads;
  drop_rights(is_linked ? kMostMemoryFile : 0);
  if (!filter_system_calls()) ::_exit(0);  // without seccomp bpf() would be real: do not try
  const LibbpfLog said;
  if (const auto parsed = parse_elf_object(elf); parsed)
    if (const ElfSection* types = parsed->find_section(".BTF"); types != nullptr)
      (void)read_declarations(types->content);
  if (is_linked) {
    LinkedWalk linked;
    (void)link_walker(linked, elf, {{"", -1}});
  }
  if (const OwnedObject object = open_object(elf, name.c_str()); object != nullptr)
    (void)bpf_object__load(object.get());
  ::_exit(0);
}

}  // namespace

Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop) {
  const pid_t child = ::fork();
  if (child < 0) return system_error("a process that tries the object", errno);
  if (child == 0) open_and_exit(elf, name);
  constexpr timespec kPollInterval{0, 1'000'000};
  const time_t began = ::time(nullptr);
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return system_error("the process that tries the object", errno);
    const bool is_late = ::time(nullptr) - began > static_cast<time_t>(kMaxSeconds);
    const bool shall_stop = stop && stop();
    if (is_late || shall_stop) {
      ::kill(child, SIGKILL);
      (void)TEMP_FAILURE_RETRY(::waitpid(child, &status, 0));
      if (shall_stop) return Error{"stopped by a signal", EINTR};
      return Error{"it is damaged: libbpf needs more than " + std::to_string(kMaxSeconds) + " s for it"};
    }
    ::nanosleep(&kPollInterval, nullptr);
  }
  if (!WIFSIGNALED(status)) return Done{};
  return Error{"it is damaged: libbpf crashes on it (" + std::string(::strsignal(WTERMSIG(status))) + ")"};
}

}  // namespace tacho::bpf
