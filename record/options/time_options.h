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
// The number of a descriptor; nullopt: it is not a number.
std::optional<int> parse_descriptor(std::string_view text);

// An interval since the recording began; without an end: until the recording ends.
struct TimeRange {
  std::chrono::milliseconds begin{0};
  std::optional<std::chrono::milliseconds> end;

  bool operator==(const TimeRange&) const = default;
};

// The value of -D. "MS": from then on. "MS-MS,MS-MS": in these intervals only, ascending. "-1": samples begin
// when --control enables them.
struct Delay {
  bool starts_disabled = false;   // -1
  std::vector<TimeRange> ranges;  // empty: from the start to the end
};
Result<Delay> parse_delay(std::string_view text);

// "10", "0.5s", "500ms", "15m", "2h", "1d": a time of a millisecond at least. The error names the option.
Result<std::chrono::milliseconds> parse_duration(std::string_view option, std::string_view text);

enum class Due : std::uint8_t { Enable, Disable, Stop };

// When a recording takes samples, and when it ends (-D, --duration).
class Schedule {
 public:
  // `ends_by_itself`: a command or --control will end the recording; else it ends with the last range.
  Schedule(const Delay& delay, std::optional<std::chrono::milliseconds> duration, bool ends_by_itself);

  // Whether samples are taken from the start.
  bool starts_enabled() const { return starts_enabled_; }
  // Steps due at `now`, a time since recording began; one at a time, in order.
  std::optional<Due> take_due(std::chrono::milliseconds now);
  // The time of the next step.
  std::optional<std::chrono::milliseconds> next_step() const;

 private:
  struct Step {
    std::chrono::milliseconds at;
    Due due;
  };
  std::vector<Step> steps_;
  std::size_t done_ = 0;
  bool starts_enabled_ = true;
};

struct TimeOptions {
  Delay delay;
  std::optional<std::chrono::milliseconds> duration;
  std::optional<ControlChannel> control;
  // Between readings of summaries; nullopt: only at the end.
  std::optional<std::chrono::milliseconds> interval;
  bool needs_summary = true;  // a message says when --interval has no effect, since there is no summary

  // Whether samples begin later than the recording.
  bool begins_late() const { return delay.starts_disabled || !delay.ranges.empty(); }
};

// Appends these options; they set `time`, which must outlive the parsing.
void add_time_options(TimeOptions& time, std::vector<cli::Option>& rows);
// Refuses options that exclude each other.
Result<> check_time_options(const TimeOptions& time, bool has_command);

}  // namespace tacho::record
