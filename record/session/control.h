// --control: commands to a running recording by perf's protocol, a line each through a descriptor or FIFO,
// with an answer through another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/options/time_options.h"

namespace tacho::record {

struct ControlCommand {
  enum class Kind : std::uint8_t { Enable, Disable, EventList, Snapshot, Stop, Ping, Unknown };
  Kind kind = Kind::Unknown;
  std::string argument;  // the event of Enable and Disable, the flags of EventList; of Unknown the whole line
};
ControlCommand parse_command(std::string_view line);

class Control {
 public:
  // Opens the descriptors or FIFOs of commands and answers. FIFOs must exist; for root, other users must not
  // be able to write or replace them.
  static Result<Control> open(const ControlPlace& place);
  Control(Control&& other) noexcept;
  Control& operator=(Control&&) = delete;
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  int fd() const { return commands_.get(); }
  // The commands that came by now. A line may come in pieces.
  std::vector<ControlCommand> take();
  // It has no writer any more.
  bool is_closed() const { return is_closed_; }

  void acknowledge();
  void refuse(std::string_view why);

 private:
  Control() = default;
  void answer(std::string_view line);

  format::Fd commands_, answers_;
  std::string line_;  // as far as it came
  bool is_closed_ = false;
  std::chrono::milliseconds patience_{1000};
};

// What commands from outside do to a running recording.

class ControlHandler {
 public:
  struct Callbacks {
    std::function<void()> stop;
    std::function<Result<>()> snapshot;  // starts one; snapshot_done() answers
    std::function<void(std::string_view)> say;
  };
  // All that is passed must outlive it.
  ControlHandler(Control& control, const KernelEvents& events, Callbacks callbacks)
      : control_(control), events_(events), callbacks_(std::move(callbacks)) {}

  // Executes the commands that came, and answers.
  void handle_commands();
  // The snapshot that begins now answers all commands so far.
  void snapshot_begun();
  // It is written: answers the commands that asked before it started.
  void snapshot_done();
  // The recording is over: answers the commands that still wait.
  void end(const std::optional<Error>& failure);

 private:
  // An error: why it is refused. Snapshots are answered later.
  Result<> execute(const ControlCommand& command);
  void list_events(const std::string& flags) const;

  Control& control_;
  const KernelEvents& events_;
  Callbacks callbacks_;
  std::size_t snapshots_ = 0;        // not answered yet
  std::size_t begun_snapshots_ = 0;  // of these, the ones whose file is being written
};

}  // namespace tacho::record
