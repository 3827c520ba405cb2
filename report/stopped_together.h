// Ctrl-Z, which a terminal tells to the group of this process alone: a worker has a group of its own, so that
// nobody gets out of it, and is stopped and continued with this one.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <thread>

#include "format/base/file.h"

namespace tacho::report {

// While it lives, SIGTSTP stops this process and the group of `worker`, and what continues this process
// continues both. A thread does it, as this one may be writing to a pager that was stopped as well. Nothing
// happens where SIGTSTP is ignored.
class StoppedTogether {
 public:
  explicit StoppedTogether(pid_t worker);
  StoppedTogether(const StoppedTogether&) = delete;
  StoppedTogether& operator=(const StoppedTogether&) = delete;
  ~StoppedTogether() { end(); }

  // From here on this process stops alone. Before the number of the group may be somebody else's.
  void end();

 private:
  format::Fd signals_, end_, watched_end_;  // the last two are a pair of sockets: shut down, the thread ends
  std::thread thread_;
};

}  // namespace tacho::report
