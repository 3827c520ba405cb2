// When a recording takes samples, and when it ends: -D and --duration.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

// A stretch of time since recording began; without an end: until it is over.
struct TimeRange {
  std::chrono::milliseconds begin{0};
  std::optional<std::chrono::milliseconds> end;

  bool operator==(const TimeRange&) const = default;
};

// What -D says. "MS": from then on. "MS-MS,MS-MS": in these stretches alone, ascending. "-1": nothing is
// taken until somebody says so (--control).
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
  // `ends_by_itself`: something else will end the recording (a command, or whoever controls it); else it is
  // over when the last of the ranges is.
  Schedule(const Delay& delay, std::optional<std::chrono::milliseconds> duration, bool ends_by_itself);

  // Whether samples are taken from the first moment on.
  bool starts_enabled() const { return starts_enabled_; }
  // What is due at `now`, a time since recording began; one at a time, in order.
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

}  // namespace tacho::record
