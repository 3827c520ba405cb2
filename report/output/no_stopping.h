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
    sigprocmask(SIG_BLOCK, &stops_, &before_);
  }
  NoStopping(const NoStopping&) = delete;
  NoStopping& operator=(const NoStopping&) = delete;
  // What came meanwhile came too late: the work is done.
  ~NoStopping() {
    const timespec at_once{};
    while (sigtimedwait(&stops_, nullptr, &at_once) > 0) {
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t stops_{}, before_{};
};

}  // namespace tacho::report
