// Commands to a running recording: --control, and --switch-output-event.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/options/options.h"
#include "record/options/time_options.h"
#include "record/plan/plan.h"

namespace tacho::record {

// --control: commands to a running recording by perf's protocol, a line each through a descriptor or FIFO,
// with an answer through another.

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
  static Result<Control> open(const ControlChannel& place);
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

// The effect of commands on a running recording.

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
  // The snapshot that begins now answers all commands received so far.
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

// --switch-output-event: events that start another file, and are not recorded themselves.

// The events of the option as a plan, with the smallest rings. `threads`: of the target.
Result<Plan> plan_switch_events(const RecordOptions& options, std::span<const int> threads, const Host& host);

class SwitchEvents {
 public:
  static Result<SwitchEvents> open(Plan& plan, const Host& host, const std::function<bool()>& stop);

  // To be watched for being readable, once for each time.
  std::vector<int> fds() const;
  Result<> enable() const { return events_.enable_samples(); }
  // How many there were since the last call; at least one when the ring was full.
  std::uint64_t take();

 private:
  explicit SwitchEvents(KernelEvents events) : events_(std::move(events)) {}
  KernelEvents events_;
};

}  // namespace tacho::record
