// Signals of a terminal: Ctrl-Z stops this process and its child together, Ctrl-C requests an end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <thread>
#include <utility>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::sandbox {

// Stops and continues a child's process group together with this process. The child has a process group, so
// that all of its children can be killed; but a terminal sends Ctrl-Z to the parent's group only.
//
// While the object exists, SIGTSTP stops this process and the group, and SIGCONT continues both. A thread
// handles the signals, since the calling thread may be blocked in a write to a pager that was stopped too.
// Does nothing if SIGTSTP is ignored.
class JobControl {
 public:
  explicit JobControl(pid_t child);
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;
  ~JobControl() { end_control(); }

  // Stops handling signals. Call it before the id of the child's process group can be reused.
  void end_control();

 private:
  format::Fd signals_, end_, watched_end_;  // the last two: a socket pair, whose shutdown ends the thread
  std::thread thread_;
};

// Turns the first SIGINT or SIGTERM into a request to stop, for commands that follow a capture or record; the
// second one kills the process. Signals that were blocked before stay blocked. Threads that are started
// meanwhile inherit the signal mask.
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
  sigset_t blocked_;  // by this object
  bool is_asked_for_ = false;
};

}  // namespace tacho::sandbox
