// Signals as something to wait for: those that end a recording, and the one that asks for a snapshot, come
// through a descriptor.
#pragma once

#include <csignal>
#include <optional>

#include "format/file.h"
#include "format/result.h"

namespace tacho::record {

struct StopSignal {
  int number = 0;
  // The terminal or the kernel sent it, so a command of the same group got it too.
  bool from_terminal = false;
  // What the command is told, when it is told: the same, but TERM for what was meant for us alone.
  int for_command = 0;

  // USR2 ends nothing.
  bool asks_for_snapshot() const { return number == SIGUSR2; }
};

class StopSignals {
 public:
  // Blocks INT, TERM, HUP (unless it came ignored: nohup), QUIT, USR1, USR2, PIPE and XFSZ in this thread and
  // those made later. A PIPE or XFSZ of our own writing is an error of write() and stops nothing by itself.
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

}  // namespace tacho::record
