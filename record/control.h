// Commands to a running recording, by perf's protocol: a line each through a descriptor or a FIFO, and
// optionally an answer to each through another.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/file.h"
#include "format/result.h"
#include "record/control_place.h"

namespace tacho::record {

struct ControlCommand {
  enum class Kind : std::uint8_t { Enable, Disable, EventList, Snapshot, Stop, Ping, Unknown };
  Kind kind = Kind::Unknown;
  std::string argument;  // the event of Enable and Disable, the flags of EventList; of Unknown the whole line
};
ControlCommand parse_command(std::string_view line);

class Control {
 public:
  // Opens what was named. FIFOs must be there already, and as root be out of the hands of other users, who
  // could direct the recording through them.
  static Result<Control> open(const ControlPlace& place);
  Control(Control&& other) noexcept;
  Control& operator=(Control&&) = delete;
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  int fd() const { return commands_.get(); }
  // The commands that came by now. A line may come in pieces.
  std::vector<ControlCommand> take();
  // Nobody can write to it any more.
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

}  // namespace tacho::record
