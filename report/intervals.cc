#include "report/intervals.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "format/base/units.h"

namespace tacho::report {
namespace {

constexpr double kShortest = 1e-6, kLongestInterval = 1e9;  // s

// In ns.
std::optional<std::uint64_t> time_in(std::string_view text) {
  constexpr double kSecond = 1e9;
  const auto time = format::parse_time(text, kSecond);
  if (!time || !(*time >= kShortest * kSecond && *time <= kLongestInterval * kSecond)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*time));
}

Result<std::uint64_t> parse_interval(std::string_view text) {
  // No minutes ("m") here: a slip of one letter in "ms" would make another valid time. The recorder has them.
  const bool is_long = !text.empty() && std::string_view("mhd").find(text.back()) != std::string_view::npos;
  const auto length = is_long ? std::nullopt : time_in(text);
  if (!length)
    return use_error("--interval: '" + std::string(text) +
                     "' is no time from 0.000001 up: seconds, or a number with ns, us, ms or s, as in 100ms");
  return *length;
}

// The value of --interval in the recorder's command line; nullopt when it was not given and counters were
// read at the end only. The recorded command may have an option of that name, too, so the search ends where
// the command starts: after "--", or at a word that is neither an option nor may be the value of one.
std::optional<std::string> recorder_interval(const std::vector<std::string>& words) {
  constexpr std::string_view kName = "--interval";
  const std::size_t first = words.size() > 1 && words[1] == "record" ? 2 : 1;
  for (std::size_t i = first; i < words.size() && words[i] != "--"; ++i) {
    const std::string_view word = words[i];
    const bool may_be_value = i > first && words[i - 1].starts_with('-');
    if (!word.starts_with('-') && !may_be_value) break;
    if (word == kName && i + 1 < words.size()) return words[i + 1];
    if (word.starts_with(kName) && word.substr(kName.size()).starts_with('='))
      return std::string(word.substr(kName.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

std::string Intervals::samples_without_times(const format::EventSet& events) const {
  std::string text;
  for (const auto& [event, samples] : timeless_)
    text += fmt::format("{}{} sample{} of '{}'", text.empty() ? "" : ", ", samples, samples == 1 ? "" : "s",
                        events[event].name);
  return text.empty() ? text : text + " have no time and are in no interval; record with -T";
}

std::string note_on_readings(std::string_view event, const format::Environment& environment,
                             const Readings& readings, std::uint64_t length) {
  if (length == 0 || environment.command_line.empty()) return {};
  const std::string counted = "'" + std::string(event) + "' was counted in the kernel and read ";
  if (readings.is_one())
    return counted + "once, so all of it is in one interval; record with --interval to spread it over time";
  const auto text = recorder_interval(environment.command_line);
  const auto interval = text ? time_in(*text) : std::nullopt;
  if (!interval || length % *interval == 0) return {};
  const std::string seconds = fmt::format("{}", static_cast<double>(*interval) / 1e9);
  return fmt::format(
      "{}every {} s, and --interval is no multiple of that, so an interval may hold all of a reading or "
      "nothing of it; take --interval {} or a multiple of it",
      counted, seconds, seconds);
}

cli::Option interval_option(std::string help, std::uint64_t& length) {
  return {"--interval", cli::Takes::Value, "TIME", std::move(help),
          [&length](std::string_view text) -> Result<> {
            const auto parsed = parse_interval(text);
            if (!parsed) return parsed.error();
            length = *parsed;
            return Done{};
          }};
}

}  // namespace tacho::report
