// The workload (the recorded command): forked early, so that events can be opened on it, and started when
// they are ready. And the signals that end a recording.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

// Signals that end a recording, and SIGUSR2 for a snapshot, read from a signalfd.
struct StopSignal {
  int number = 0;
  // Whether the terminal or the kernel sent it: then a command in the same process group got it too.
  bool from_terminal = false;
  // The signal to pass on to the command: the same one, but TERM for signals that are for the recorder only.
  int for_command = 0;

  // SIGUSR2: a snapshot; the recording goes on.
  bool asks_for_snapshot() const { return number == SIGUSR2; }
};

class StopSignals {
 public:
  // Blocks INT, TERM, HUP (unless it came ignored: nohup), QUIT, USR1, USR2, PIPE and XFSZ in this thread
  // and the ones made later. A PIPE or XFSZ of this process's writing is an error of write() and stops
  // nothing itself.
  static Result<StopSignals> block();
  int fd() const { return fd_.get(); }
  std::optional<StopSignal> take() const;

  // While nothing is recorded yet: whether one came by now. It is kept, and not given by take().
  bool ends_start() {
    if (ended_start_ == 0) {
      if (const auto signal = take(); signal && !signal->asks_for_snapshot()) ended_start_ = signal->number;
    }
    return ended_start_ != 0;
  }
  // Its number; 0 when the start was not ended.
  int start_ended_by() const { return ended_start_; }

 private:
  explicit StopSignals(format::Fd fd) : fd_(std::move(fd)) {}
  format::Fd fd_;
  int ended_start_ = 0;
};

// The recorded command: forked early, so that events can be opened on it, and exec()ed when all is ready.

class Workload {
 public:
  // The command's standard output: the recorder's, or standard error when the capture goes to standard
  // output. Nowhere: it has neither, nor input, as another process owns the terminal.
  enum class Output { AsOurs, ToErrors, Nowhere };
  // Forks a child that waits. A command that does not exist is found out here, before anything is recorded.
  // It has the recorder's environment, with the variables ("NAME=VALUE") of `environment` replaced.
  static Result<Workload> create(const std::vector<std::string>& command, Output output = Output::AsOurs,
                                 const std::vector<std::string>& environment = {});
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) = delete;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  // A command that was never started exits, and is reaped; a running one is left alone.
  ~Workload();

  pid_t pid() const { return pid_; }
  // Whether it may be more than a copy of this program by now.
  bool is_started() const { return started_; }
  // Readable when the command has ended; -1 on kernels without pidfd (before 5.3).
  int end_fd() const { return pidfd_.get(); }

  // Lets the child exec the command; an error when the exec failed.
  Result<> start();
  // The status for our own exit: the command's, or 128 + its signal. Nothing while it runs.
  std::optional<int> status();
  void send(int signal) const;

 private:
  Workload() = default;
  std::string name_;
  pid_t pid_ = -1;
  format::Fd pidfd_;
  format::Fd go_;      // writing starts it, closing makes it exit
  format::Fd failed_;  // its exec's errno comes here
  bool started_ = false;
  std::optional<int> status_;
};

}  // namespace tacho::record
