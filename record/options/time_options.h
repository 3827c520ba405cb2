// Options about when samples are taken (-D, --duration, --control, --interval), and the schedule that -D
// makes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"

namespace tacho::record {

struct ControlChannel {
  bool is_fifo = false;
  std::string commands, answers;  // descriptor numbers or paths; no answers: empty
};
// "fd:N[,M]" or "fifo:PATH[,PATH]".
Result<ControlChannel> parse_control(std::string_view text);
// The number of a descriptor; nothing when it is none.
std::optional<int> parse_descriptor(std::string_view text);

// When a recording takes samples, and when it ends: -D and --duration.

// An interval since the recording began; without an end: until it is over.
struct TimeRange {
  std::chrono::milliseconds begin{0};
  std::optional<std::chrono::milliseconds> end;

  bool operator==(const TimeRange&) const = default;
};

// The value of -D. "MS": from then on. "MS-MS,MS-MS": in these intervals only, ascending. "-1": nothing is
// taken until --control enables it.
struct Delay {
  bool starts_disabled = false;   // and stays so
  std::vector<TimeRange> ranges;  // empty: from the start to the end
};
Result<Delay> parse_delay(std::string_view text);

// "10", "0.5s", "500ms", "15m", "2h", "1d": a time of a millisecond at least. The message names the option.
Result<std::chrono::milliseconds> parse_duration(std::string_view option, std::string_view text);

enum class Due : std::uint8_t { Enable, Disable, Stop };

class Schedule {
 public:
  // `ends_by_itself`: something else will end the recording (a command, or --control); else it is over when
  // the last of the ranges is.
  Schedule(const Delay& delay, std::optional<std::chrono::milliseconds> duration, bool ends_by_itself);

  // Whether samples are taken from the first moment on.
  bool starts_enabled() const { return starts_enabled_; }
  // Steps due at `now`, a time since recording began; one at a time, in order.
  std::optional<Due> take(std::chrono::milliseconds now);
  // When something is due next.
  std::optional<std::chrono::milliseconds> next() const;

 private:
  struct Step {
    std::chrono::milliseconds at;
    Due due;
  };
  std::vector<Step> steps_;
  std::size_t done_ = 0;
  bool starts_enabled_ = true;
};

// Options about when samples are taken: -D, --duration, --control, --interval.

struct TimeOptions {
  Delay delay;
  std::optional<std::chrono::milliseconds> duration;
  std::optional<ControlChannel> control;
  std::optional<std::chrono::milliseconds>
      interval;               // between readings of summaries; nothing: at the end alone
  bool needs_summary = true;  // report an interval without summaries: the user gave it

  // Whether samples begin with the exec of a command, or at a time of their own.
  bool begins_late() const { return delay.starts_disabled || !delay.ranges.empty(); }
};

// Their rows; they set `time`, which must outlive the parsing.
void add_time_options(TimeOptions& time, std::vector<cli::Option>& rows);
// Refuses what makes no sense together.
Result<> check_time_options(const TimeOptions& time, bool has_command);

}  // namespace tacho::record
