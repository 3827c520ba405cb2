#include "record/packing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/exit_status.h"
#include "format/file.h"

extern char** environ;

namespace tacho::record {
namespace {

constexpr int kNiceness = 10;               // the host has other work
constexpr std::uint64_t kMargin = 1 << 26;  // bytes: the names, and what others write meanwhile
constexpr int kLookEvery = 20;  // ms, where the kernel does not tell of a child's end (before 5.3)

std::optional<std::string> program_beside() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  std::string path = self.parent_path() / "tacho-report";
  return ::access(path.c_str(), X_OK) == 0 ? std::optional(std::move(path)) : std::nullopt;
}

// Why it is not done by itself, to be followed by what to do; empty: it is.
std::string reason_against(const Packing& packing) {
  struct stat file {};
  struct statvfs system {};
  if (::stat(packing.capture.c_str(), &file) != 0 || ::statvfs(packing.capture.c_str(), &system) != 0)
    return std::system_category().message(errno);
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size > kMostPackedBytes) return "it is larger than 1 GB";
  const std::uint64_t free = std::uint64_t{system.f_bavail} * system.f_frsize;
  if (free < size + kMargin + packing.least_free) return "there is no room for a second copy beside it";
  return {};
}

// With standard output that cannot be mistaken for the command's.
Result<pid_t> start(const std::string& program, const Packing& packing) {
  std::vector<std::string> words{program, "pack", "--brief", "-i", packing.capture};
  if (packing.is_quiet) words.emplace_back("--quiet");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // In a group of its own: Ctrl-C comes to us, and we end it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int code = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return system_error(program, code);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(child), kNiceness);
  return child;
}

struct End {
  int status = 0;
  bool is_by_signal_to_us = false;
};

// The first signal asks it to end, which it does not do between writing its file and naming it; the second
// ends it at once, and what has no name yet may lie there.
End wait_for(pid_t child, const StopSignals& signals) {
  End end;
  const format::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  for (;;) {
    const pid_t got = ::waitpid(child, &end.status, WNOHANG);
    if (got == child || (got < 0 && errno != EINTR)) return end;
    std::array<pollfd, 2> news{{{signals.fd(), POLLIN, 0}, {ended.get(), POLLIN, 0}}};
    (void)::poll(news.data(), news.size(), ended ? -1 : kLookEvery);
    while (const auto signal = signals.take()) {
      if (signal->asks_for_snapshot()) continue;
      ::kill(child, end.is_by_signal_to_us ? SIGKILL : SIGTERM);
      end.is_by_signal_to_us = true;
    }
  }
}

}  // namespace

void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages) {
  const auto say_not = [&](const std::string& why) {
    messages.note(fmt::format("{}: names are not packed into it: {}; tacho pack {} does that",
                              packing.capture, why, packing.capture));
  };
  const auto program = program_beside();
  if (!program)
    return messages.detail("names are not packed: tacho-report is not installed beside tacho-record");
  if (const std::string why = reason_against(packing); !why.empty()) return say_not(why);
  std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started us, its end would not be told
  const auto child = start(*program, packing);
  if (!child) return say_not(child.error().what);
  const End end = wait_for(*child, signals);
  const int exit = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : -1;
  if (exit == cli::kWhole || exit == cli::kIncomplete) return;
  if (end.is_by_signal_to_us) return say_not("a signal came");
  say_not(exit < 0 ? fmt::format("tacho-report died of signal {}", WTERMSIG(end.status)) : "see above");
}

}  // namespace tacho::record
