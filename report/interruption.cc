#include "report/interruption.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace tacho::report {

Result<Interruption> Interruption::watch() {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (::sigprocmask(SIG_BLOCK, &set, &before) != 0) return system_error("sigprocmask", errno);
  format::Fd signals(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  const int code = errno;
  // Of others nothing is changed: they may be blocked or unblocked meanwhile (report/stopped_together.h).
  for (const int signal : {SIGINT, SIGTERM})
    if (sigismember(&before, signal) == 1) sigdelset(&set, signal);
  if (signals) return Interruption(std::move(signals), set);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  return system_error("signalfd", code);
}

Interruption::~Interruption() {
  if (signals_ && !is_asked_for_) ::sigprocmask(SIG_UNBLOCK, &blocked_, nullptr);
}

bool Interruption::is_asked_for() {
  signalfd_siginfo info{};
  if (is_asked_for_ || ::read(signals_.get(), &info, sizeof info) != sizeof info) return is_asked_for_;
  is_asked_for_ = true;
  ::sigprocmask(SIG_UNBLOCK, &blocked_, nullptr);
  return true;
}

}  // namespace tacho::report
