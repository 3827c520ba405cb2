#include "report/stopped_together.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <system_error>

namespace tacho::report {
namespace {

sigset_t stop_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
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

// The kernel does not stop a group that no shell would continue, and neither is the worker then for longer
// than that takes.
void stop_both(pid_t worker) {
  ::kill(-worker, SIGSTOP);
  const sigset_t set = stop_signal();
  (void)::pthread_kill(::pthread_self(), SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // here all threads stand, until it is continued
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::kill(-worker, SIGCONT);
}

// No signal tells the end: one of a kind stands for many, and SIGCONT takes away one that waits.
void watch(int signals, int end, pid_t worker) {
  std::array<pollfd, 2> news{{{signals, POLLIN, 0}, {end, POLLIN, 0}}};
  for (;;) {
    if (::poll(news.data(), news.size(), -1) < 0) continue;
    if (news[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) == sizeof info) stop_both(worker);
  }
}

}  // namespace

StoppedTogether::StoppedTogether(pid_t worker) {
  const sigset_t set = stop_signal();
  if (is_ignored() || is_blocked()) return;
  signals_ = format::Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  std::array<int, 2> ends{-1, -1};
  (void)::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
  end_ = format::Fd(ends[0]);
  watched_end_ = format::Fd(ends[1]);
  if (!signals_ || !end_) return;  // this process stops alone, and the worker when it has nothing more to do
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    thread_ = std::thread(watch, signals_.get(), watched_end_.get(), worker);
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
}

void StoppedTogether::end() {
  if (!thread_.joinable()) return;
  (void)::shutdown(end_.get(), SHUT_WR);  // needs no memory; copies of `end_` in children do not matter
  thread_.join();
  const sigset_t set = stop_signal();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tacho::report
