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
  if (signals) return Interruption(std::move(signals), before);
  const int code = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return system_error("signalfd", code);
}

Interruption::~Interruption() {
  if (signals_ && !is_asked_for_) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Interruption::is_asked_for() {
  signalfd_siginfo info{};
  if (is_asked_for_ || ::read(signals_.get(), &info, sizeof info) != sizeof info) return is_asked_for_;
  is_asked_for_ = true;
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  return true;
}

}  // namespace tacho::report
