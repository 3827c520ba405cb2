#include "record/time_options.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace tacho::record {

void add_time_options(TimeOptions& time, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      {"-D,--delay", Takes::Value, "MS",
       "Take samples only from so many ms after the start on, or only in the stretches MS-MS,MS-MS; -1: not "
       "before --control says enable",
       [&time](std::string_view text) -> Result<> {
         auto delay = parse_delay(text);
         if (!delay) return std::move(delay.error());
         time.delay = std::move(*delay);
         return Done{};
       }},
      {"--duration", Takes::Value, "TIME",
       "Without a COMMAND: end after so long, as in 10 (seconds), 500ms, 15m",
       [&time](std::string_view text) -> Result<> {
         const auto duration = parse_duration("--duration", text);
         if (!duration) return duration.error();
         time.duration = *duration;
         return Done{};
       }},
      {"--interval", Takes::Value, "TIME",
       "Read what BPF programs count in maps (SUMMARY() in tacho/event.h) every so often, as in 1 (seconds), "
       "100ms, "
       "and not at the end alone: each sample then tells what came since the last reading",
       [&time](std::string_view text) -> Result<> {
         const auto interval = parse_duration("--interval", text);
         if (!interval) return interval.error();
         time.interval = *interval;
         return Done{};
       }},
      {"--control", Takes::Value, "WHERE",
       "Listen for commands, a line each: enable [EVENT], disable [EVENT], snapshot, evlist [-v|-F], ping, "
       "stop. WHERE: "
       "fd:N[,N] or fifo:PATH[,PATH]; through the second each is answered with \"ack\" or \"error: ...\"",
       [&time](std::string_view text) -> Result<> {
         auto place = parse_control(text);
         if (!place) return std::move(place.error());
         // Asked before we open anything: later the number could be one of ours.
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
