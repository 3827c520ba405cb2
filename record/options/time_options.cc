#include "record/options/time_options.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "format/base/units.h"
#include "record/parse_text.h"

namespace tacho::record {

std::optional<int> parse_descriptor(std::string_view text) {
  const auto number = whole_number<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

Result<ControlChannel> parse_control(std::string_view text) {
  const auto wrong = [text] {
    return use_error("--control: '" + std::string(text) +
                     "' is neither fd:N[,ANSWERS] nor fifo:PATH[,ANSWERS]");
  };
  ControlChannel place;
  place.is_fifo = text.starts_with("fifo:");
  if (!place.is_fifo && !text.starts_with("fd:")) return wrong();
  const std::string_view names = text.substr(text.find(':') + 1);
  const auto comma = names.find(',');
  place.commands = names.substr(0, comma);
  if (comma != std::string_view::npos) place.answers = names.substr(comma + 1);
  const bool is_named =
      !place.commands.empty() && (comma == std::string_view::npos || !place.answers.empty());
  const bool are_numbers =
      parse_descriptor(place.commands) && (place.answers.empty() || parse_descriptor(place.answers));
  if (!is_named || (!place.is_fifo && !are_numbers)) return wrong();
  return place;
}

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongest = std::chrono::hours(24 * 365);

Error wrong_delay(std::string_view text) {
  return use_error("-D: '" + std::string(text) +
                   "' is neither a number of ms, nor -1, nor intervals such as 10-20,30-40 in ms");
}

// Removes a number of ms from the start of `text`.
std::optional<milliseconds> take_ms(std::string_view& text) {
  const auto ms = take_number<std::uint32_t>(text);
  return ms && milliseconds(*ms) <= kLongest ? std::optional(milliseconds(*ms)) : std::nullopt;
}

}  // namespace

Result<Delay> parse_delay(std::string_view text) {
  Delay delay;
  delay.starts_disabled = text == "-1";
  if (delay.starts_disabled) return delay;
  std::string_view rest = text;
  for (;;) {
    const auto begin = take_ms(rest);
    if (!begin) return wrong_delay(text);
    if (rest.empty() && delay.ranges.empty()) {
      if (*begin != milliseconds(0)) delay.ranges.push_back({*begin, {}});
      return delay;
    }
    if (!take_prefix(rest, "-")) return wrong_delay(text);
    const auto end = take_ms(rest);
    if (!end || *end <= *begin) return wrong_delay(text);
    if (!delay.ranges.empty() && *begin <= *delay.ranges.back().end)
      return use_error("-D: '" + std::string(text) + "': each interval starts after the one before it");
    delay.ranges.push_back({*begin, *end});
    if (rest.empty()) return delay;
    if (!take_prefix(rest, ",")) return wrong_delay(text);
  }
}

Result<milliseconds> parse_duration(std::string_view option, std::string_view text) {
  constexpr double kSecond = 1e9, kNsOfMs = 1e6;
  const double ms = std::round(format::parse_time(text, kSecond).value_or(0) / kNsOfMs);
  if (ms < 1 || ms > static_cast<double>(kLongest.count())) {
    return use_error(std::string(option) + ": '" + std::string(text) +
                     "' is not a time such as 10 or 0.5 (seconds), 500ms, 15m or 2h");
  }
  return milliseconds(static_cast<milliseconds::rep>(ms));
}

Schedule::Schedule(const Delay& delay, std::optional<milliseconds> duration, bool ends_by_itself) {
  starts_enabled_ = !delay.starts_disabled && delay.ranges.empty();
  for (const TimeRange& range : delay.ranges) {
    if (range.begin == milliseconds(0)) {
      starts_enabled_ = true;
    } else {
      steps_.push_back({range.begin, Due::Enable});
    }
    if (range.end) steps_.push_back({*range.end, Due::Disable});
  }
  const bool is_over = !delay.ranges.empty() && delay.ranges.back().end && !ends_by_itself;
  if (is_over) steps_.push_back({*delay.ranges.back().end, Due::Stop});
  if (duration) steps_.push_back({*duration, Due::Stop});
  std::ranges::stable_sort(steps_, {}, &Step::at);
}

std::optional<Due> Schedule::take_due(milliseconds now) {
  if (done_ == steps_.size() || steps_[done_].at > now) return std::nullopt;
  return steps_[done_++].due;
}

std::optional<milliseconds> Schedule::next_step() const {
  return done_ == steps_.size() ? std::nullopt : std::optional(steps_[done_].at);
}

void add_time_options(TimeOptions& time, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      {"-D,--delay", Takes::Value, "MS",
       "Begin sampling MS milliseconds after the start, or sample only in the intervals MS-MS,MS-MS; -1: "
       "begin when --control enables events",
       [&time](std::string_view text) { return store(time.delay, parse_delay(text)); }},
      {"--duration", Takes::Value, "TIME",
       "Without a COMMAND: end after TIME, as in 10 (seconds), 500ms, 15m",
       [&time](std::string_view text) { return store(time.duration, parse_duration("--duration", text)); }},
      {"--interval", Takes::Value, "TIME",
       "Read the maps in which BPF programs count (SUMMARY() in tacho/event.h) every TIME, as in 1 "
       "(seconds), 100ms, and not only at the end. Each sample then has the increase since the last reading",
       [&time](std::string_view text) { return store(time.interval, parse_duration("--interval", text)); }},
      {"--control", Takes::Value, "WHERE",
       "Read commands, one a line: enable [EVENT], disable [EVENT], snapshot, evlist [-v|-F], ping, stop. "
       "WHERE: fd:N[,N] or fifo:PATH[,PATH]; answers, \"ack\" or \"error: ...\", are written to the second "
       "one",
       [&time](std::string_view text) -> Result<> {
         auto place = parse_control(text);
         if (!place) return std::move(place.error());
         // Checked before any file is opened: later the number could be the recorder's own.
         for (const std::string& number : {place->commands, place->answers})
           if (!place->is_fifo && !number.empty() &&
               fcntl(parse_descriptor(number).value_or(-1), F_GETFD) < 0)
             return use_error("--control: descriptor " + number + " is not open");
         time.control = std::move(*place);
         return Done{};
       }},
  };
  std::ranges::move(own, std::back_inserter(rows));
}

Result<> check_time_options(const TimeOptions& time, bool has_command) {
  if (time.duration && has_command)
    return use_error("--duration: the COMMAND bounds the time; name what to watch with -a, -p, ... instead");
  if (time.delay.starts_disabled && !time.control)
    return use_error("-D -1: nothing could ever enable the events; add --control fifo:PATH");
  return Done{};
}

}  // namespace tacho::record
