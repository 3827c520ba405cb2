// What commands from outside do to a running recording.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "format/result.h"
#include "record/control.h"
#include "record/kernel/kernel_events.h"

namespace tacho::record {

class Commander {
 public:
  struct Means {
    std::function<void()> stop;
    std::function<Result<>()> snapshot;  // begins one; who asked is answered by snapshot_done()
    std::function<void(std::string_view)> say;
  };
  // All that is passed must outlive it.
  Commander(Control& control, const KernelEvents& events, Means means)
      : control_(control), events_(events), means_(std::move(means)) {}

  // Does what was asked for by now, and answers.
  void obey();
  // What was asked for by now is in the snapshot that is being written.
  void snapshot_begun();
  // It is written: answers those, and not who asked later.
  void snapshot_done();
  // The recording is over: whoever still waits is told what became of it.
  void end(const std::optional<Error>& failure);

 private:
  // An error: why it is refused. Snapshots are answered later.
  Result<> carry_out(const ControlCommand& command);
  void list_events(const std::string& flags) const;

  Control& control_;
  const KernelEvents& events_;
  Means means_;
  std::size_t snapshots_ = 0;        // not answered yet
  std::size_t begun_snapshots_ = 0;  // of these, those whose file is being written
};

}  // namespace tacho::record
