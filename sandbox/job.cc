#include "sandbox/job.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <system_error>

namespace tacho::sandbox {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool is_ignored() {
  struct sigaction action {};
  return ::sigaction(SIGTSTP, nullptr, &action) != 0 || action.sa_handler != SIG_DFL;
}

bool is_blocked() {
  sigset_t now;
  sigemptyset(&now);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, SIGTSTP) == 1;
}

// The kernel does not stop an orphaned process group; then the child continues at once.
void stop_both(pid_t child) {
  ::kill(-child, SIGSTOP);
  const sigset_t set = set_of({SIGTSTP});
  (void)::pthread_kill(::pthread_self(), SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // the process stops here, until SIGCONT
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::kill(-child, SIGCONT);
}

// The thread is ended by a socket and not by a signal, since equal signals merge, and SIGCONT discards a
// pending SIGTSTP.
void wait_for_stops(int signals, int end, pid_t child) {
  std::array<pollfd, 2> news{{{signals, POLLIN, 0}, {end, POLLIN, 0}}};
  for (;;) {
    if (::poll(news.data(), news.size(), -1) < 0) continue;
    if (news[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) == sizeof info) stop_both(child);
  }
}

}  // namespace

JobControl::JobControl(pid_t child) {
  const sigset_t set = set_of({SIGTSTP});
  if (is_ignored() || is_blocked()) return;
  signals_ = format::Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  std::array<int, 2> ends{-1, -1};
  (void)::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
  end_ = format::Fd(ends[0]);
  watched_end_ = format::Fd(ends[1]);
  if (!signals_ || !end_)
    return;  // then SIGTSTP stops only this process; the child blocks when its pipe is full
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    thread_ = std::thread(wait_for_stops, signals_.get(), watched_end_.get(), child);
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
}

void JobControl::end_control() {
  if (!thread_.joinable()) return;
  (void)::shutdown(end_.get(), SHUT_WR);  // unlike close(), it works although children have copies of `end_`
  thread_.join();
  const sigset_t set = set_of({SIGTSTP});
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Result<Interruption> Interruption::watch() {
  sigset_t set = set_of({SIGINT, SIGTERM}), before;
  if (::sigprocmask(SIG_BLOCK, &set, &before) != 0) return system_error("sigprocmask", errno);
  format::Fd signals(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  const int code = errno;
  // Unblocks these signals alone: JobControl may have blocked others meanwhile.
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

}  // namespace tacho::sandbox
