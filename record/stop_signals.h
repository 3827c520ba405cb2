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
};

class StopSignals {
 public:
  // Blocks INT, TERM, HUP (unless it came ignored: nohup) and QUIT in this thread and those made later; PIPE
  // and XFSZ become errors of write().
  static Result<StopSignals> block();
  int fd() const { return fd_.get(); }
  std::optional<StopSignal> take() const;

 private:
  explicit StopSignals(format::Fd fd) : fd_(std::move(fd)) {}
  format::Fd fd_;
};

}  // namespace tacho::record
