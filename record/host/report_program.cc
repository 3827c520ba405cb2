#include "record/host/report_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/file.h"
#include "format/trusted_path.h"

extern char** environ;

namespace tacho::record {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kLookEvery = 50;  // ms
using Clock = std::chrono::steady_clock;

enum class Ending : std::uint8_t { ByItself, Stopped, TooLong, TooMuch };

Ending read_all(int from, const ReportRun& run, Clock::time_point until, std::string& out) {
  std::array<char, 4096> piece{};
  for (;;) {
    if (run.stop && run.stop()) return Ending::Stopped;
    if (Clock::now() >= until) return Ending::TooLong;
    pollfd news{from, POLLIN, 0};
    if (::poll(&news, 1, kLookEvery) <= 0) continue;
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ending::ByItself;
    out.append(piece.data(), static_cast<std::size_t>(got));
    if (out.size() > kMostBytes) return Ending::TooMuch;
  }
}

// What closed its output need not have ended. `status` is that of waitpid() when it ended by itself; it is
// there to be killed and reaped otherwise.
Result<Ending> wait_for(pid_t child, const ReportRun& run, Clock::time_point until, int& status) {
  for (int patience = 1;; patience = std::min(2 * patience, kLookEvery)) {
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return Ending::ByItself;
    if (got < 0 && errno != EINTR) return system_error("waiting for tacho-report", errno);
    if (run.stop && run.stop()) return Ending::Stopped;
    if (Clock::now() >= until) return Ending::TooLong;
    (void)::poll(nullptr, 0, patience);
  }
}

Result<> kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return system_error("waiting for tacho-report", errno);
  return Done{};
}

}  // namespace

std::optional<std::string> report_program() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  std::string path = self.parent_path() / "tacho-report";
  if (::access(path.c_str(), X_OK) != 0 || !format::check_beside(self, path)) return std::nullopt;
  return path;
}

Result<pid_t> start_report_program(std::vector<std::string> words, int output, int errors,
                                   std::span<const int> inherited) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (errors >= 0)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  else
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // On itself a descriptor is put so that it is not closed.
  for (const int one : inherited) posix_spawn_file_actions_adddup2(&actions, one, one);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // In a group of its own: a signal comes to us, and we end it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int code =
      posix_spawn(&child, words.front().c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return system_error(words.front(), code);
  return child;
}

Result<std::string> ask_report_program(const std::string& program, const ReportRun& run) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe", errno);
  const format::Fd from(ends[0]);
  format::Fd to(ends[1]);
  std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started us, its end would not be told
  std::vector<std::string> words{program};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  const auto child = start_report_program(std::move(words), to.get(), kNowhere);
  if (!child) return child.error();
  to = format::Fd();
  std::string out;
  const auto until = Clock::now() + run.longest;
  Ending ending = read_all(from.get(), run, until, out);
  int status = 0;
  if (ending == Ending::ByItself) {
    const auto waited = wait_for(*child, run, until, status);
    if (!waited) return waited.error();
    ending = *waited;
  }
  if (ending != Ending::ByItself)
    if (auto done = kill_group(*child); !done) return std::move(done.error());
  if (ending == Ending::Stopped) return Error{"stopped by a signal", EINTR};
  if (ending == Ending::TooLong)
    return Error{"tacho-report took more than " + std::to_string(run.longest.count()) + " s"};
  if (ending == Ending::TooMuch) return Error{"tacho-report says too much", EFBIG};
  if (WIFSIGNALED(status)) return Error{"tacho-report died of signal " + std::to_string(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0)
    return Error{"tacho-report ended with status " + std::to_string(WEXITSTATUS(status))};
  return out;
}

}  // namespace tacho::record
