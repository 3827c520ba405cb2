// The workload (the recorded command): forked early, so that events can be opened on it, and started when
// they are ready. And the signals that end a recording.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

// A signal that ends a recording, or SIGUSR2 for a snapshot, read from a signalfd.
struct StopSignal {
  int number = 0;
  // Whether the terminal or the kernel sent it: then a command in the same process group got it too.
  bool from_terminal = false;
  // The signal that the command gets: the same, or TERM for signals that mean something only to the recorder.
  int for_command = 0;

  // SIGUSR2: a snapshot; the recording goes on.
  bool is_snapshot() const { return number == SIGUSR2; }
};

class StopSignals {
 public:
  // Blocks INT, TERM, HUP (unless ignored at the start, by nohup), QUIT, USR1, USR2, PIPE and XFSZ in this
  // thread and later ones. PIPE and XFSZ from this process's own writes are ignored: write() returns an
  // error.
  static Result<StopSignals> block();
  int fd() const { return fd_.get(); }
  std::optional<StopSignal> take_signal() const;

  // Before the recording starts: whether a stop signal has arrived. take_signal() does not return that one.
  bool ends_start() {
    if (ended_start_ == 0) {
      if (const auto signal = take_signal(); signal && !signal->is_snapshot()) ended_start_ = signal->number;
    }
    return ended_start_ != 0;
  }
  // The number of that signal; 0: none.
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
  // output. Nowhere: no output and no input, since another process owns the terminal.
  enum class Output { AsOurs, ToErrors, Nowhere };
  // Forks a child that waits. An error if the command does not exist. The child has the recorder's
  // environment, with the variables ("NAME=VALUE") of `environment` replaced.
  static Result<Workload> create(const std::vector<std::string>& command, Output output = Output::AsOurs,
                                 const std::vector<std::string>& environment = {});
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) = delete;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  // Ends and reaps a child that was not started; a started command goes on.
  ~Workload();

  pid_t pid() const { return pid_; }
  bool is_started() const { return started_; }
  // Readable when the command has ended; -1 on kernels without pidfd (before 5.3).
  int end_fd() const { return pidfd_.get(); }

  // Before start(): the command and its children run on these CPUs only. Empty: on all.
  Result<> pin(const std::vector<int>& cpus) const;
  // Lets the child exec the command; an error when the exec failed, or when `stop` says that a signal came
  // meanwhile.
  Result<> start(const std::function<bool()>& stop = {});
  // The command's exit status, or 128 + its signal; nullopt while it runs.
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
