// Signals as something to wait for: those that end a recording come through a descriptor.
#pragma once

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
};

class StopSignals {
 public:
  // Blocks INT, TERM, HUP (unless it came ignored: nohup), QUIT, USR1, PIPE and XFSZ in this thread and those
  // made later. A PIPE or XFSZ of our own writing is an error of write() and stops nothing by itself.
  static Result<StopSignals> block();
  int fd() const { return fd_.get(); }
  std::optional<StopSignal> take() const;

 private:
  explicit StopSignals(format::Fd fd) : fd_(std::move(fd)) {}
  format::Fd fd_;
};

}  // namespace tacho::record
