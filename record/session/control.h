// Commands to a running recording, from where they come to what they do: --control, and
// --switch-output-event.
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
#include "record/plan/make_plan.h"
#include "record/plan/plan.h"

namespace tacho::record {

struct ControlCommand {
  enum class Kind : std::uint8_t { Enable, Disable, EventList, Snapshot, Stop, Ping, Unknown };
  Kind kind = Kind::Unknown;
  std::string argument;  // Enable, Disable: the event; EventList: the flags; Unknown: the whole line
};
ControlCommand parse_command(std::string_view line);

// --control: perf's protocol for commands to a running recording. Each command is a line from a descriptor or
// FIFO; the answer goes to another one.
class Control {
 public:
  // Opens the descriptors or FIFOs of commands and answers. FIFOs must exist; for root, other users must not
  // be able to write or replace them.
  static Result<Control> open(const ControlChannel& place);
  int fd() const { return commands_.get(); }
  // The commands that have arrived. A line may arrive in pieces.
  std::vector<ControlCommand> take_commands();
  // Whether all writers closed it.
  bool is_closed() const { return is_closed_; }

  void acknowledge();
  void refuse(std::string_view why);

 private:
  Control() = default;
  void answer(std::string_view line);

  format::Fd commands_, answers_;
  std::string line_;  // an incomplete line
  bool is_closed_ = false;
  std::chrono::milliseconds patience_{1000};
};

// Executes the commands.
class ControlHandler {
 public:
  struct Callbacks {
    std::function<void()> stop;
    std::function<Result<>()> snapshot;  // starts one; snapshot_done() answers
    std::function<void(std::string_view)> say;
  };
  // The arguments must outlive this.
  ControlHandler(Control& control, const KernelEvents& events, Callbacks callbacks)
      : control_(control), events_(events), callbacks_(std::move(callbacks)) {}

  // Executes and answers the commands that have arrived.
  void handle_commands();
  // A snapshot starts, for all snapshot commands received so far.
  void snapshot_begun();
  // The snapshot is written: answers the commands from before its start.
  void snapshot_done();
  // The recording is over: answers the remaining commands.
  void answer_waiting(const std::optional<Error>& failure);

 private:
  // The error says why the command is refused. Snapshots are answered later.
  Result<> execute(const ControlCommand& command);
  void list_events(const std::string& flags) const;

  Control& control_;
  const KernelEvents& events_;
  Callbacks callbacks_;
  std::size_t snapshots_ = 0;        // snapshot commands that were not answered yet
  std::size_t begun_snapshots_ = 0;  // those whose file is being written
};

// The events of --switch-output-event as a plan, with the smallest rings. They start the next file and are
// not recorded. Cgroups do not matter.
Result<Plan> plan_switch_events(const RecordOptions& options, const PlanTarget& target, const Host& host);

class SwitchEvents {
 public:
  static Result<SwitchEvents> open(const Plan& plan, const Host& host, const std::function<bool()>& stop);

  // Readable when an event has happened; poll them edge-triggered.
  std::vector<int> fds() const;
  Result<> enable() const { return events_.enable_samples(); }
  // The number of events since the last call; at least 1 if the ring was full.
  std::uint64_t take_events();

 private:
  explicit SwitchEvents(KernelEvents events) : events_(std::move(events)) {}
  KernelEvents events_;
};

}  // namespace tacho::record
