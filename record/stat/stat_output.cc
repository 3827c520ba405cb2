#include "record/stat/stat_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "format/base/printable.h"
#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr double kNsPerSecond = 1e9, kNsPerMs = 1e6;

// perf's widths of columns.
constexpr std::size_t kUnitWidth = 4, kNameWidth = 32, kMetricWidth = 35, kNameWithoutCount = 25;

bool is_clock(const CountedEvent& event) {
  const auto& attr = event.planned.attr;
  return attr.type == abi::kSoftware && (attr.config == abi::kCpuClock || attr.config == abi::kTaskClock);
}

// What a count is compared with.
enum class Base : std::uint8_t { Cycles, Instructions, Branches, CacheReferences, L1Loads, LlcLoads };
constexpr std::uint32_t kCacheLoads = 0, kCacheMisses = 1U << 16, kLlc = 2;

struct KnownEvent {
  std::uint32_t type;
  std::uint64_t config;
  Base base;
};
// Events whose counts are bases.
constexpr KnownEvent kBases[] = {
    {abi::kHardware, 0, Base::Cycles},           {abi::kHardware, 1, Base::Instructions},
    {abi::kHardware, 4, Base::Branches},         {abi::kHardware, 2, Base::CacheReferences},
    {abi::kHwCache, kCacheLoads, Base::L1Loads}, {abi::kHwCache, kLlc | kCacheLoads, Base::LlcLoads},
};
// Events that are shown as a part of another one's count.
struct PartOf {
  std::uint32_t type;
  std::uint64_t config;
  Base base;
  bool is_ratio;  // else percent
  std::string_view unit;
};
constexpr PartOf kParts[] = {
    {abi::kHardware, 1, Base::Cycles, true, "insn per cycle"},
    {abi::kHardware, 5, Base::Branches, false, "of all branches"},
    {abi::kHardware, 3, Base::CacheReferences, false, "of all cache refs"},
    {abi::kHardware, 7, Base::Cycles, false, "frontend cycles idle"},
    {abi::kHardware, 8, Base::Cycles, false, "backend cycles idle"},
    {abi::kHwCache, kCacheMisses, Base::L1Loads, false, "of all L1-dcache accesses"},
    {abi::kHwCache, kLlc | kCacheMisses, Base::LlcLoads, false, "of all LL-cache accesses"},
};

struct Metric {
  double value = 0;
  std::string unit;
  int digits = 3;            // after the point
  std::string_view after{};  // the number
};

class Rows {
 public:
  explicit Rows(const StatReport& report) : report_(report) {}

  const CountedEvent& event_of(const StatRow& row) const { return report_.events[row.event]; }

  // As perf: of clocks the CPUs that were used, of cycles their frequency, of some a part of another count,
  // of others the number per second of CPU time.
  std::optional<Metric> metric_of(const StatRow& row) const {
    const CountedEvent& event = event_of(row);
    const double count = row.count.value();
    const auto& attr = event.planned.attr;
    if (is_clock(event)) {
      const double elapsed = report_.times.elapsed_s.value();
      if (elapsed <= 0) return std::nullopt;
      return Metric{count / kNsPerSecond / elapsed, "CPUs utilized"};
    }
    for (const PartOf& part : kParts) {
      if (part.type != attr.type || part.config != attr.config) continue;
      const double base = sum_of_base(part.base, row);
      if (base == 0) break;
      return part.is_ratio ? Metric{count / base, std::string(part.unit), 2, " "}
                           : Metric{100 * count / base, std::string(part.unit), 2, "%"};
    }
    const double ns = clock_ns(row);
    if (ns == 0 || !event.unit.empty()) return std::nullopt;
    if (attr.type == abi::kHardware && attr.config == 0) return Metric{count / ns, "GHz"};
    double rate = kNsPerSecond * count / ns;
    std::string unit = "/sec";
    for (const char* const scale : {"K", "M", "G"}) {
      if (rate < 1000) break;
      rate /= 1000;
      unit = std::string(scale) + "/sec";
    }
    return Metric{rate, std::move(unit)};
  }

 private:
  static bool are_alike(const StatRow& one, const StatRow& other) {
    return one.cpu == other.cpu && one.thread == other.thread;
  }
  bool is_usable(const StatRow& row, const StatRow& for_row) const {
    return are_alike(row, for_row) && row.is_counted && event_of(row).is_supported &&
           event_of(row).cgroup == event_of(for_row).cgroup;
  }
  double clock_ns(const StatRow& for_row) const {
    for (const StatRow& row : report_.rows)
      if (is_usable(row, for_row) && is_clock(event_of(row))) return row.count.value();
    return 0;
  }
  double sum_of_base(Base base, const StatRow& for_row) const {
    for (const StatRow& row : report_.rows) {
      const auto& attr = event_of(row).planned.attr;
      for (const KnownEvent& known : kBases)
        if (known.base == base && known.type == attr.type && known.config == attr.config &&
            is_usable(row, for_row))
          return row.count.value();
    }
    return 0;
  }

  const StatReport& report_;
};

// "1,234,567".
std::string grouped(std::string digits) {
  constexpr std::size_t kGroup = 3;
  for (std::size_t at = digits.size(); at > kGroup; at -= kGroup) digits.insert(at - kGroup, ",");
  return digits;
}

struct Shown {
  std::string count, unit;
  double value = 0;
};

Shown shown_count(const CountedEvent& event, const StatRow& row, bool groups) {
  Shown out;
  if (is_clock(event)) {
    out.value = row.count.value() / kNsPerMs;
    out.unit = "msec";
  } else {
    out.value = row.count.value() * event.scale;
    out.unit = event.unit;
  }
  if (!event.is_supported)
    out.count = "<not supported>";
  else if (!row.is_counted)
    out.count = "<not counted>";
  else if (is_clock(event) || event.scale != 1)
    out.count = fmt::format("{:.2f}", out.value);
  else
    out.count = fmt::format("{:.0f}", out.value);
  if (groups && event.is_supported && row.is_counted) {
    const std::size_t point = std::min(out.count.find('.'), out.count.size());
    out.count = grouped(out.count.substr(0, point)) + out.count.substr(point);
  }
  return out;
}

double running_share(const StatRow& row) {
  return row.enabled_ns.value() > 0 ? 100 * row.running_ns.value() / row.enabled_ns.value() : 100;
}

std::string noise(const Mean& mean) {
  return mean.error_share() > 0 ? fmt::format("  ( +-{:6.2f}% )", mean.error_share()) : "";
}

std::string place_of(const StatRow& row, const StatOptions& options) {
  if (options.rows == StatRows::Cpus) return fmt::format("CPU{:<7} ", row.cpu);
  if (options.rows == StatRows::Threads)
    return fmt::format("{:>16}-{:<8} ", format::printable(row.thread_name), row.thread);
  return "";
}

std::string text_row(const StatRow& row, const Rows& rows, const StatOptions& options) {
  const CountedEvent& event = rows.event_of(row);
  const Shown shown = shown_count(event, row, options.groups_digits);
  const bool has_count = event.is_supported && row.is_counted;
  const std::string name = format::printable(event.planned.name);
  std::string line = place_of(row, options);
  line += fmt::format("{:>18} {:<{}} {:<{}}", shown.count, has_count || is_clock(event) ? shown.unit : "",
                      kUnitWidth, name, has_count ? kNameWidth : kNameWithoutCount);
  if (!event.cgroup.empty()) line += " " + format::printable(event.cgroup);
  const auto metric = has_count ? rows.metric_of(row) : std::nullopt;
  if (metric) {
    const std::string number = fmt::format("{:{}.{}f}{}", metric->value, metric->after.empty() ? 8 : 7,
                                           metric->digits, metric->after);
    line += fmt::format(" # {} {:<{}}", number, metric->unit, kMetricWidth - 4 - number.size());
  } else {
    line += std::string(kMetricWidth, ' ');
  }
  if (!has_count) return line + '\n';
  line += noise(row.count);
  if (row.running_ns.value() != row.enabled_ns.value())
    line += fmt::format("  ({:.2f}%)", running_share(row));
  return line + '\n';
}

// A title, the rows, and the times of the run.
std::string as_text(const StatReport& report, const StatOptions& options) {
  const Rows rows(report);
  std::string out;
  if (report.times.at_s) {
    if (report.is_first) out += "#           time             counts unit events\n";
    for (const StatRow& row : report.rows)
      out += fmt::format("{:16.9f} ", *report.times.at_s) + text_row(row, rows, options);
    return out;
  }
  out += fmt::format("\n Performance counter stats for {}{}:\n\n", title_of_target(options),
                     options.runs > 1 ? fmt::format(" ({} runs)", options.runs) : "");
  for (const StatRow& row : report.rows) out += text_row(row, rows, options);
  const Mean& elapsed = report.times.elapsed_s;
  if (options.runs > 1) {
    const double error = elapsed.error();
    const int precision =
        2 + (error > 1 || error <= 0 ? 0 : static_cast<int>(std::lround(std::ceil(-std::log10(error)))));
    out += fmt::format("\n {:17.{}f} +- {:.{}f} seconds time elapsed{}\n\n", elapsed.value(), precision,
                       error, precision, noise(elapsed));
    return out;
  }
  out += fmt::format("\n {:17.9f} seconds time elapsed\n", elapsed.value());
  if (options.target.watch == Watch::Command)
    out += fmt::format("\n {:17.9f} seconds user\n {:17.9f} seconds sys\n", report.times.user_s,
                       report.times.system_s);
  return out + '\n';
}

// count,unit,event[,cgroup][,error],running ns,running %,metric,unit of the metric
std::string as_csv(const StatReport& report, const StatOptions& options) {
  const Rows rows(report);
  std::string out;
  for (const StatRow& row : report.rows) {
    const CountedEvent& event = rows.event_of(row);
    const Shown shown = shown_count(event, row, false);
    std::vector<std::string> cells;
    if (report.times.at_s) cells.push_back(fmt::format("{:16.9f}", *report.times.at_s));
    if (options.rows == StatRows::Cpus) cells.push_back(fmt::format("CPU{}", row.cpu));
    if (options.rows == StatRows::Threads)
      cells.push_back(fmt::format("{}-{}", format::printable(row.thread_name), row.thread));
    const std::string name = format::printable(event.planned.name);
    cells.insert(cells.end(), {shown.count, shown.unit, name});
    if (!event.cgroup.empty()) cells.push_back(format::printable(event.cgroup));
    if (options.runs > 1) cells.push_back(fmt::format("{:.2f}%", row.count.error_share()));
    const bool has_count = event.is_supported && row.is_counted;
    cells.push_back(fmt::format("{:.0f}", has_count ? row.running_ns.value() : 0.0));
    cells.push_back(fmt::format("{:.2f}", running_share(row)));
    const auto metric = has_count ? rows.metric_of(row) : std::nullopt;
    cells.push_back(metric ? fmt::format("{:.{}f}", metric->value, metric->digits) : "");
    cells.push_back(metric ? metric->unit : "");
    out += fmt::format("{}\n", fmt::join(cells, options.separator));
  }
  return out;
}

// A text in quotes; printable_json() leaves quotes to the writer.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : format::printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_place(const StatRow& row, const StatOptions& options) {
  if (options.rows == StatRows::Cpus) return fmt::format("\"cpu\" : \"{}\", ", row.cpu);
  if (options.rows == StatRows::Threads)
    return fmt::format("\"thread\" : {}, ", json_text(fmt::format("{}-{}", row.thread_name, row.thread)));
  return "";
}

std::string as_lines(const StatReport& report, const StatOptions& options) {
  const Rows rows(report);
  std::string out;
  for (const StatRow& row : report.rows) {
    const CountedEvent& event = rows.event_of(row);
    const Shown shown = shown_count(event, row, false);
    const bool has_count = event.is_supported && row.is_counted;
    const auto metric = has_count ? rows.metric_of(row) : std::nullopt;
    out += "{";
    if (report.times.at_s) out += fmt::format("\"interval\" : {:.9f}, ", *report.times.at_s);
    out += json_place(row, options);
    out += fmt::format("\"counter-value\" : {}, \"unit\" : {}, \"event\" : {}, ",
                       json_text(has_count ? fmt::format("{:.6f}", shown.value) : shown.count),
                       json_text(shown.unit), json_text(event.planned.name));
    if (!event.cgroup.empty()) out += fmt::format("\"cgroup\" : {}, ", json_text(event.cgroup));
    if (options.runs > 1) out += fmt::format("\"variance\" : {:.2f}, ", row.count.error_share());
    out += fmt::format(
        "\"event-runtime\" : {:.0f}, \"pcnt-running\" : {:.2f}, \"metric-value\" : {:.6f}, \"metric-unit\" : "
        "{}}}\n",
        has_count ? row.running_ns.value() : 0.0, running_share(row), metric ? metric->value : 0.0,
        json_text(metric ? metric->unit : ""));
  }
  return out;
}

std::string as_document(const StatReport& report, const StatOptions& options) {
  const Rows rows(report);
  std::string out = "{\"target\": " + json_text(title_of_target(options));
  if (!options.command.empty()) {
    std::vector<std::string> words;
    for (const std::string& word : options.command) words.push_back(json_text(word));
    out += fmt::format(", \"command\": [{}]", fmt::join(words, ", "));
  }
  if (report.times.at_s) out += fmt::format(", \"at_seconds\": {:.9f}", *report.times.at_s);
  out += fmt::format(", \"elapsed_seconds\": {:.9f}", report.times.elapsed_s.value());
  if (options.target.watch == Watch::Command && !report.times.at_s)
    out += fmt::format(", \"user_seconds\": {:.6f}, \"system_seconds\": {:.6f}", report.times.user_s,
                       report.times.system_s);
  out += ", \"counts\": [";
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const StatRow& row = report.rows[i];
    const CountedEvent& event = rows.event_of(row);
    const bool has_count = event.is_supported && row.is_counted;
    out += fmt::format("{}{{\"event\": {}, \"count\": ", i == 0 ? "" : ", ", json_text(event.planned.name));
    if (!has_count)
      out += "null";
    else if (event.scale != 1)
      out += fmt::format("{}", row.count.value() * event.scale);
    else
      out += fmt::format("{:.0f}", row.count.value());
    out += fmt::format(", \"unit\": {}", json_text(is_clock(event) ? "ns" : event.unit));
    if (!has_count)
      out += fmt::format(", \"missing\": \"{}\"", event.is_supported ? "not counted" : "not supported");
    if (!event.cgroup.empty()) out += fmt::format(", \"cgroup\": {}", json_text(event.cgroup));
    if (options.rows == StatRows::Cpus) out += fmt::format(", \"cpu\": {}", row.cpu);
    if (options.rows == StatRows::Threads)
      out += fmt::format(", \"tid\": {}, \"comm\": {}", row.thread, json_text(row.thread_name));
    out += fmt::format(", \"enabled_ns\": {:.0f}, \"running_ns\": {:.0f}", row.enabled_ns.value(),
                       row.running_ns.value());
    if (const auto metric = has_count ? rows.metric_of(row) : std::nullopt)
      out += fmt::format(", \"metric\": {{\"value\": {:.6f}, \"unit\": {}}}", metric->value,
                         json_text(metric->unit));
    out += "}";
  }
  return out + "]}\n";
}

}  // namespace

void Mean::add_value(double value) {
  ++count_;
  const double delta = value - mean_;
  mean_ += delta / static_cast<double>(count_);
  squares_ += delta * (value - mean_);
}

double Mean::error() const {
  if (count_ < 2) return 0;
  const auto count = static_cast<double>(count_);
  return std::sqrt(squares_ / (count - 1) / count);
}

std::string title_of_target(const StatOptions& options) {
  const Target& target = options.target;
  std::vector<std::string> cpus;
  for (const int cpu : target.cpus) cpus.push_back(std::to_string(cpu));
  switch (target.watch) {
    case Watch::Processes:
      if (target.user) return fmt::format("user id '{}'", *target.user);
      return fmt::format("process id '{}'", fmt::join(target.ids, ","));
    case Watch::Threads:
      return fmt::format("thread id '{}'", fmt::join(target.ids, ","));
    case Watch::Command:
      return format::printable(fmt::format("'{}'", fmt::join(options.command, " ")));
    case Watch::System:
      break;
  }
  return cpus.empty() ? "'system wide'" : fmt::format("'CPU(s) {}'", fmt::join(cpus, ","));
}

std::string stat_text(const StatReport& report, const StatOptions& options) {
  switch (options.form) {
    case StatForm::Text:
      return as_text(report, options);
    case StatForm::Csv:
      return as_csv(report, options);
    case StatForm::Lines:
      return as_lines(report, options);
    case StatForm::Document:
      break;
  }
  return as_document(report, options);
}

}  // namespace tacho::record
