// Ctrl-C as a wish to come to an end, for commands that wait for more.
#pragma once

#include <signal.h>

#include <utility>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::report {

// While it lives, INT and TERM end nothing by themselves; the second one does. Whoever started this program
// with such a signal ignored does not want it to end by it. Threads that are started meanwhile are in the
// same state.
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

}  // namespace tacho::report
