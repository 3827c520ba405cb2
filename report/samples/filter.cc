#include "report/samples/filter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns

template <class List, class Value>
bool is_in(const List& list, const Value& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error wrong_time(std::string_view text) {
  return use_error(
      "--time: '" + std::string(text) +
      "' is no range of times; write seconds as 1.5,2.25 or parts of the capture as 10%-20% or 10%/2");
}

// Seconds with up to nine decimals -> ns.
std::optional<std::uint64_t> parse_seconds(std::string_view text) {
  const auto point = text.find('.');
  const auto seconds = number_in<std::uint64_t>(text.substr(0, point));
  if (!seconds || *seconds > ~std::uint64_t{0} / kSecond - 1) return std::nullopt;
  if (point == std::string_view::npos) return *seconds * kSecond;
  std::string digits(text.substr(point + 1));
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  digits.resize(9, '0');
  const auto nanoseconds = number_in<std::uint64_t>(digits);
  if (!nanoseconds) return std::nullopt;
  return *seconds * kSecond + *nanoseconds;
}

struct Part {
  double first = 0, last = 1;  // of the whole
};

std::optional<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto number = number_in<double>(text.substr(0, text.size() - 1));
  if (!number || !(*number >= 0 && *number <= 100)) return std::nullopt;
  return *number / 100;
}

// "10%-20%", or "10%/2": the second tenth.
std::optional<Part> parse_part(std::string_view text) {
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    const auto size = parse_percent(text.substr(0, slash));
    const auto number = number_in<unsigned>(text.substr(slash + 1));
    if (!size || !number || *number == 0 || *size * *number > 1.0000001) return std::nullopt;
    return Part{*size * (*number - 1), *size * *number};
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_percent(text.substr(0, dash)), last = parse_percent(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Part{*first, *last};
}

}  // namespace

bool Filter::accepts_cpu(std::uint32_t cpu) const { return is_in(cpus, cpu); }

// Ranges that follow each other share no sample: only the last one includes its end.
bool Filter::accepts_time(std::uint64_t time) const {
  if (times.empty()) return true;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const bool is_last = i + 1 == times.size();
    if (time >= times[i].first && (time < times[i].last || (is_last && time == times[i].last))) return true;
  }
  return false;
}

bool Filter::accepts(const ResolvedSample& sample) const {
  return accepts_cpu(sample.raw->cpu) && accepts_time(sample.raw->time) && is_in(pids, sample.pid()) &&
         is_in(tids, sample.tid()) && is_in(comms, sample.comm) && is_in(events, sample.event().name);
}

Result<std::vector<std::uint32_t>> parse_number_list(std::string_view option, std::string_view text) {
  constexpr std::uint32_t kMostInRange = 65536;
  std::vector<std::uint32_t> numbers;
  for (const std::string_view item : split(text, ',')) {
    const auto dash = item.find('-');
    const auto first = number_in<std::uint32_t>(item.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number_in<std::uint32_t>(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first > kMostInRange) {
      return use_error(std::string(option) + ": '" + std::string(item) +
                       "' is neither a number nor a range like 2-5");
    }
    for (std::uint64_t number = *first; number <= *last; ++number)
      numbers.push_back(static_cast<std::uint32_t>(number));
  }
  return numbers;
}

std::vector<std::string> parse_name_list(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) names.emplace_back(name);
  return names;
}

Result<std::vector<Filter::TimeRange>> parse_times(std::string_view text,
                                                   const format::Environment& environment) {
  std::vector<Filter::TimeRange> ranges;
  if (text.find('%') == std::string_view::npos) {
    const auto sides = split(text, ',');
    if (sides.size() != 2) return wrong_time(text);
    const auto first = sides[0].empty() ? 0 : parse_seconds(sides[0]);
    const auto last = sides[1].empty() ? ~std::uint64_t{0} : parse_seconds(sides[1]);
    if (!first || !last || *first > *last) return wrong_time(text);
    ranges.push_back({*first, *last});
    return ranges;
  }
  if (!environment.sample_time || environment.sample_time->second <= environment.sample_time->first) {
    return use_error(
        "--time: this capture's header does not say when it begins and ends, so parts of it (%) cannot be "
        "found; give seconds, as tacho script prints them");
  }
  const auto [begin, end] = *environment.sample_time;
  const auto length = static_cast<double>(end - begin);
  for (const std::string_view item : split(text, ',')) {
    const auto part = parse_part(item);
    if (!part) return wrong_time(text);
    ranges.push_back({begin + static_cast<std::uint64_t>(std::llround(part->first * length)),
                      begin + static_cast<std::uint64_t>(std::llround(part->last * length))});
  }
  if (!std::ranges::is_sorted(ranges, {}, &Filter::TimeRange::first)) return wrong_time(text);
  return ranges;
}

}  // namespace tacho::report
