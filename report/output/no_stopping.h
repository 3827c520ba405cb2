// Work that signals do not end half-way, as there is a file without its name meanwhile, which must not stay
// behind.
#pragma once

#include <signal.h>

#include <ctime>
#include <initializer_list>

namespace tacho::report {

class NoStopping {
 public:
  NoStopping() {
    sigemptyset(&stops_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&stops_, signal);
    sigset_t before;
    sigprocmask(SIG_BLOCK, &stops_, &before);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      if (sigismember(&before, signal) == 1) sigdelset(&stops_, signal);
  }
  NoStopping(const NoStopping&) = delete;
  NoStopping& operator=(const NoStopping&) = delete;
  // What came meanwhile came too late: the work is done.
  ~NoStopping() {
    if (is_over_) return;
    const timespec at_once{};
    while (sigtimedwait(&stops_, nullptr, &at_once) > 0) {
    }
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

  // The file has its name, and the work goes on: what came meanwhile ends it.
  void let_stop() {
    is_over_ = true;
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

 private:
  sigset_t stops_{};  // that are blocked by this
  bool is_over_ = false;
};

}  // namespace tacho::report
