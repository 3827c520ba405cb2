#include "report/samples/filter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns

template <class List, class Value>
bool passes_list(const List& list, const Value& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

// `list` is ascending.
bool passes_sorted_list(const std::vector<std::uint32_t>& list, std::uint32_t number) {
  return list.empty() || std::ranges::binary_search(list, number);
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
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error wrong_time(std::string_view text) {
  return use_error(
      "--time: '" + std::string(text) +
      "' is not a range of times; write seconds as 1.5,2.25 or parts of the capture as 10%-20% or 10%/2");
}

// Seconds with up to nine decimals -> ns.
std::optional<std::uint64_t> parse_seconds(std::string_view text) {
  const auto point = text.find('.');
  const auto seconds = parse_number<std::uint64_t>(text.substr(0, point));
  if (!seconds || *seconds > ~std::uint64_t{0} / kSecond - 1) return std::nullopt;
  if (point == std::string_view::npos) return *seconds * kSecond;
  std::string digits(text.substr(point + 1));
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  digits.resize(9, '0');
  const auto nanoseconds = parse_number<std::uint64_t>(digits);
  if (!nanoseconds) return std::nullopt;
  return *seconds * kSecond + *nanoseconds;
}

struct PercentRange {
  double first = 0, last = 1;  // share of the capture's time
};

std::optional<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto number = parse_number<double>(text.substr(0, text.size() - 1));
  if (!number || !(*number >= 0 && *number <= 100)) return std::nullopt;
  return *number / 100;
}

// "10%-20%", "10%/2" (the second tenth), or "10%" (the first).
std::optional<PercentRange> parse_part(std::string_view text) {
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    const auto size = parse_percent(text.substr(0, slash));
    const auto number = parse_number<unsigned>(text.substr(slash + 1));
    if (!size || !number || *number == 0 || *size * *number > 1.0000001) return std::nullopt;
    return PercentRange{*size * (*number - 1), *size * *number};
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto size = parse_percent(text);
    return size ? std::optional(PercentRange{0, *size}) : std::nullopt;
  }
  const auto first = parse_percent(text.substr(0, dash)), last = parse_percent(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return PercentRange{*first, *last};
}

// "1.5,2.25 3,4"
Result<std::vector<Filter::TimeRange>> parse_ranges(std::string_view text) {
  std::vector<Filter::TimeRange> ranges;
  for (const std::string_view item : split(text, ' ')) {
    const auto sides = split(item, ',');
    if (sides.size() != 2) return wrong_time(text);
    const auto first = sides[0].empty() ? 0 : parse_seconds(sides[0]);
    const auto last = sides[1].empty() ? ~std::uint64_t{0} : parse_seconds(sides[1]);
    if (!first || !last || *first > *last) return wrong_time(text);
    if (!ranges.empty() && *first <= ranges.back().last) return wrong_time(text);
    ranges.push_back({*first, *last});
  }
  return ranges;
}

// As in perf, a hexadecimal number with or without 0x is an address.
std::optional<std::uint64_t> parse_hex_address(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t address = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return address;
}

}  // namespace

bool Filter::looks_at_start() const {
  return !pids.empty() || !tids.empty() || !cpus.empty() || !times.empty() || !events.empty();
}

bool Filter::accepts_cpu(std::uint32_t cpu) const { return passes_sorted_list(cpus, cpu); }

// As in perf, a sample without a time passes.
bool Filter::accepts_time(std::uint64_t time) const {
  return times.empty() || time == 0 || std::ranges::any_of(times, [&](const TimeRange& range) {
           return time >= range.first && time <= range.last;
         });
}

bool Filter::accepts_start(const format::Sample& sample) const {
  return accepts_cpu(sample.cpu) && accepts_time(sample.time) && passes_sorted_list(pids, sample.pid) &&
         passes_sorted_list(tids, sample.tid);
}

bool Filter::accepts_comm(std::string_view comm) const { return passes_list(comms, comm); }

Result<std::vector<std::uint32_t>> parse_number_list(std::string_view option, std::string_view text) {
  constexpr std::uint32_t kMaxRangeLength = 65536;
  std::vector<std::uint32_t> numbers;
  for (const std::string_view item : split(text, ',')) {
    const auto dash = item.find('-');
    const auto first = parse_number<std::uint32_t>(item.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_number<std::uint32_t>(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first > kMaxRangeLength) {
      return use_error(std::string(option) + ": '" + std::string(item) +
                       "' is neither a number nor a range like 2-5");
    }
    for (std::uint64_t number = *first; number <= *last; ++number)
      numbers.push_back(static_cast<std::uint32_t>(number));
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<std::string> parse_name_list(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) names.emplace_back(name);
  return names;
}

Result<std::vector<Filter::TimeRange>> parse_times(std::string_view text,
                                                   const format::Environment& environment) {
  if (text.find('%') == std::string_view::npos) return parse_ranges(text);
  // A capture whose samples all have one time (a summary that was read once) has a length of 0: then every
  // percentage range includes it.
  if (!environment.sample_time || environment.sample_time->second < environment.sample_time->first ||
      environment.sample_time->second == 0) {
    return use_error(
        "--time: this capture's header does not say when it begins and ends, so parts of it (%) cannot be "
        "found; give seconds, as tacho script prints them");
  }
  const auto [begin, end] = *environment.sample_time;
  const auto length = static_cast<double>(end - begin);
  const auto items = split(text, ',');
  std::vector<Filter::TimeRange> ranges;
  for (const std::string_view item : items) {
    const auto part = parse_part(item);
    const bool is_alone = item.find_first_of("/-") == std::string_view::npos;
    if (!part || (is_alone && items.size() > 1)) return wrong_time(text);
    Filter::TimeRange range{begin + static_cast<std::uint64_t>(std::llround(part->first * length)),
                            begin + static_cast<std::uint64_t>(std::llround(part->last * length))};
    // So that adjacent ranges (0%-50%, 50%-100%) share no sample, all but the last end 1 ns earlier.
    if (range.last > range.first && range.last != end) --range.last;
    ranges.push_back(range);
  }
  return ranges;
}

WantedAddresses::WantedAddresses(const Filter& filter) {
  for (const std::string& symbol : filter.symbols) {
    if (const auto address = parse_hex_address(symbol)) addresses_.push_back(*address);
  }
  range_ = std::max<std::uint64_t>(filter.symbol_range.value_or(1), 1);
}

bool WantedAddresses::has(std::uint64_t address) const {
  return std::ranges::any_of(
      addresses_, [&](std::uint64_t first) { return address >= first && address - first < range_; });
}

}  // namespace tacho::report
