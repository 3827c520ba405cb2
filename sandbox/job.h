// Signals of a terminal: Ctrl-Z stops this process and its child together, Ctrl-C asks for an end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <thread>
#include <utility>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::sandbox {

// Stops and continues the process group of a child with this process. The child has a group of its own, so
// that all it starts can be killed; but a terminal sends Ctrl-Z to the parent's group alone.
//
// While it lives, SIGTSTP stops this process and the group, and what continues this process continues both.
// A thread does it, as the calling one may be writing to a pager that was stopped as well. Nothing happens
// where SIGTSTP is ignored.
class JobControl {
 public:
  explicit JobControl(pid_t child);
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;
  ~JobControl() { end(); }

  // From here on this process stops alone. To be called before another group can get the number.
  void end();

 private:
  format::Fd signals_, end_, watched_end_;  // the last two are a pair of sockets: shut down, the thread ends
  std::thread thread_;
};

// INT and TERM as a wish to come to an end, for commands that wait for more: while it lives the first one is
// noted, the second one ends the process. A signal that was blocked before stays blocked. Threads that are
// started meanwhile are in the same state.
class Interruption {
 public:
  static Result<Interruption> watch();
  Interruption(Interruption&&) = default;
  Interruption& operator=(Interruption&&) = delete;
  ~Interruption();

  bool is_asked_for();

 private:
  Interruption(format::Fd signals, sigset_t blocked) : signals_(std::move(signals)), blocked_(blocked) {}
  format::Fd signals_;
  sigset_t blocked_;  // by this
  bool is_asked_for_ = false;
};

}  // namespace tacho::sandbox
