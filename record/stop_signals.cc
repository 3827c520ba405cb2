#include "record/stop_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

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

std::optional<StopSignal> StopSignals::take() const {
  for (;;) {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    const auto number = static_cast<int>(info.ssi_signo);
    // The kernel sends these to a writer in its own name.
    const bool is_of_our_writing =
        (number == SIGPIPE || number == SIGXFSZ) && info.ssi_pid == static_cast<std::uint32_t>(getpid());
    if (is_of_our_writing) continue;
    const auto* const row = std::ranges::find(kSignals, number, &Row::number);
    return StopSignal{number, info.ssi_code == SI_KERNEL, row->for_command};
  }
}

}  // namespace tacho::record
