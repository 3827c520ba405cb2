#include "record/session/workload.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "record/host/host.h"

namespace tacho::record {

namespace {

struct Row {
  int number;
  int for_command;
};
constexpr Row kSignals[] = {{SIGINT, SIGINT},   {SIGTERM, SIGTERM}, {SIGHUP, SIGHUP},   {SIGQUIT, SIGQUIT},
                            {SIGUSR1, SIGTERM}, {SIGUSR2, 0},       {SIGPIPE, SIGTERM}, {SIGXFSZ, SIGTERM}};

}  // namespace

Result<StopSignals> StopSignals::block() {
  sigset_t set;
  sigemptyset(&set);
  for (const Row& row : kSignals) {
    struct sigaction now {};
    const bool is_ignored = sigaction(row.number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (row.number != SIGHUP || !is_ignored) sigaddset(&set, row.number);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) return system_error("signalfd", errno);
  return StopSignals(format::Fd(fd));
}

std::optional<StopSignal> StopSignals::take_signal() const {
  for (;;) {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    const auto number = static_cast<int>(info.ssi_signo);
    // The kernel sends these for this process's own writes.
    const bool is_of_our_writing =
        (number == SIGPIPE || number == SIGXFSZ) && info.ssi_pid == static_cast<std::uint32_t>(getpid());
    if (is_of_our_writing) continue;
    const auto* const row = std::ranges::find(kSignals, number, &Row::number);
    return StopSignal{number, info.ssi_code == SI_KERNEL, row->for_command};
  }
}

namespace {

struct Pipe {
  format::Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe", errno);
  return Pipe{format::Fd(ends[0]), format::Fd(ends[1])};
}

// The recorder's environment, with the variables in `own` replaced.
std::vector<char*> variables_with(std::vector<std::string>& own) {
  std::vector<char*> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    const std::string_view name = text.substr(0, std::min(text.find('='), text.size() - 1) + 1);
    if (!std::ranges::any_of(own, [name](const std::string& mine) { return mine.starts_with(name); }))
      all.push_back(*one);
  }
  for (std::string& mine : own) all.push_back(mine.data());
  all.push_back(nullptr);
  return all;
}

// In the child: only async-signal-safe calls.
[[noreturn]] void wait_and_exec(int go, int failed, char* const* argv, char* const* variables) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  char letter = 0;
  ssize_t got = 0;
  do {
    got = read(go, &letter, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(0);  // the recorder ended
  execvpe(argv[0], argv, variables);
  const int code = errno;
  (void)!write(failed, &code, sizeof code);
  _exit(127);
}

}  // namespace

Result<Workload> Workload::create(const std::vector<std::string>& command, Output output,
                                  const std::vector<std::string>& environment) {
  if (!path_of_program(command.front()))
    return use_error(command.front() + ": no such command, or not executable");
  auto go = make_pipe();
  if (!go) return std::move(go.error());
  auto failed = make_pipe();
  if (!failed) return std::move(failed.error());
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> own = environment;
  std::vector<char*> variables = variables_with(own);

  Workload workload;
  workload.name_ = command.front();
  // The child inherits its name: it must not rename itself later, since bpf::Follower takes that for an exec.
  char own_name[16] = {};
  prctl(PR_GET_NAME, own_name);
  prctl(PR_SET_NAME, "tacho-exec");
  workload.pid_ = fork();
  const int fork_error = errno;
  if (workload.pid_ != 0) prctl(PR_SET_NAME, own_name);
  if (workload.pid_ < 0) return system_error("fork", fork_error);
  if (workload.pid_ == 0) {
    // Close the child's copy of the writing end: with it, the child would wait forever if the recorder died.
    close(go->write_end.release());
    if (output == Output::ToErrors && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(127);
    if (output == Output::Nowhere) {
      const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
      for (const int one : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (dup2(nowhere, one) < 0) _exit(127);
    }
    wait_and_exec(go->read_end.get(), failed->write_end.get(), argv.data(), variables.data());
  }
  workload.pidfd_ = format::Fd(static_cast<int>(syscall(SYS_pidfd_open, workload.pid_, 0)));
  workload.go_ = std::move(go->write_end);
  workload.failed_ = std::move(failed->read_end);
  return workload;
}

Workload::Workload(Workload&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      go_(std::move(other.go_)),
      failed_(std::move(other.failed_)),
      started_(other.started_),
      status_(other.status_) {}

Workload::~Workload() {
  if (pid_ < 0 || started_) return;
  go_ = format::Fd();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<> Workload::pin(const std::vector<int>& cpus) const {
  if (cpus.empty()) return Done{};
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu >= CPU_SETSIZE) return use_error("--pin: there is no CPU " + std::to_string(cpu));
    CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  if (sched_setaffinity(pid_, sizeof set, &set) == 0) return Done{};
  Error error = system_error("--pin", errno);
  if (error.code == EINVAL)
    error = use_error("--pin: none of these CPUs is there, or may be used by this process");
  return error;
}

Result<> Workload::start(const std::function<bool()>& stop) {
  started_ = true;
  const char letter = 1;
  if (write(go_.get(), &letter, 1) != 1) return system_error(name_, errno);
  go_ = format::Fd();
  // The exec may wait for the file system of the program.
  constexpr int kLookEvery = 100;  // ms
  for (pollfd news{failed_.get(), POLLIN, 0}; poll(&news, 1, kLookEvery) <= 0;)
    if (stop && stop()) return Error{name_ + ": stopped by a signal before it was executed", EINTR};
  // End of file without a byte: exec closed the other end, so it succeeded.
  int code = 0;
  ssize_t got = 0;
  do {
    got = read(failed_.get(), &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof code) return Done{};
  Error error = system_error(name_, code);
  error.fault = Fault::Use;
  return error;
}

std::optional<int> Workload::status() {
  if (status_) return status_;
  int how = 0;
  if (waitpid(pid_, &how, WNOHANG) != pid_) return std::nullopt;
  status_ = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
  return status_;
}

void Workload::send(int signal) const {
  if (pid_ > 0 && !status_) kill(pid_, signal);
}

}  // namespace tacho::record
