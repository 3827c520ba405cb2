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
// While the object exists, SIGTSTP stops this process and the group, and SIGCONT continues both. A thread
// handles the signals, because the calling thread may be blocked in a write to a pager that was stopped too.
// Does nothing where SIGTSTP is ignored.
class JobControl {
 public:
  explicit JobControl(pid_t child);
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;
  ~JobControl() { end(); }

  // Leaves the child's group alone from now on. Call it before the group's number can be reused.
  void end();

 private:
  format::Fd signals_, end_, watched_end_;  // the last two are a pair of sockets: shut down, the thread ends
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
