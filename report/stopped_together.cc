#include "report/stopped_together.h"

#include <pthread.h>

#include <stop_token>
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

void watch(const std::stop_token& end, pid_t worker) {
  const sigset_t set = stop_signal();
  for (;;) {
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (end.stop_requested()) return;
    if (signal == SIGTSTP) stop_both(worker);
  }
}

}  // namespace

StoppedTogether::StoppedTogether(pid_t worker) {
  const sigset_t set = stop_signal();
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
  if (is_ignored() || sigismember(&before_, SIGTSTP) == 1) return;
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    thread_ = std::jthread([worker](const std::stop_token& end) { watch(end, worker); });
  } catch (const std::system_error&) {
    // Without it this process stops alone, and the worker when it has nothing more to do.
  }
}

StoppedTogether::~StoppedTogether() {
  thread_.request_stop();
  if (thread_.joinable()) {
    (void)::pthread_kill(thread_.native_handle(), SIGTSTP);  // wakes it, and stops nobody
    thread_.join();
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace tacho::report
