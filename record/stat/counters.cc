#include "record/stat/counters.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "format/records/perf_abi.h"
#include "record/events/target.h"
#include "record/kernel/perf_event.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// What sysfs says about the PMU of an event.
struct PmuFacts {
  // The only CPUs on which it is opened, since others share its counters; nullopt: all.
  std::optional<std::vector<int>> cpus;
  std::string unit;
  double scale = 1;
};

PmuFacts facts_of_pmu(const EventRequest& request) {
  PmuFacts facts;
  if (request.type <= abi::kBreakpoint) return facts;
  std::error_code failed;
  for (const auto& folder : std::filesystem::directory_iterator("/sys/bus/event_source/devices", failed)) {
    const std::string path = folder.path().string();
    if (trimmed(text_of_file(path + "/type")) != std::to_string(request.type)) continue;
    if (const std::string mask = text_of_file(path + "/cpumask"); !mask.empty())
      if (auto cpus = parse_cpu_list(trimmed(mask))) facts.cpus = std::move(*cpus);
    // "power/energy-pkg/": the event's own file.
    std::string_view text = request.text;
    take_until(text, '/');
    const std::string event = path + "/events/" + std::string(take_until(text, '/'));
    facts.unit = trimmed(text_of_file(event + ".unit"));
    if (const std::string scale = text_of_file(event + ".scale"); !scale.empty())
      facts.scale = std::strtod(scale.c_str(), nullptr);
    return facts;
  }
  return facts;
}

PlannedEvent counting_event(const EventRequest& request, bool inherits, bool at_exec) {
  PlannedEvent event;
  event.attr.size = format::kCompatibleAttrSize;
  event.attr.type = request.type;
  event.attr.config = request.config;
  event.attr.config1 = request.config1;
  event.attr.config2 = request.config2;
  event.attr.bp_type = request.bp_type;
  event.attr.sample_type = abi::kSampleIdentifier;
  event.attr.read_format = abi::kReadTimeEnabled | abi::kReadTimeRunning;
  event.attr.flags = request.flags | abi::kDisabled;
  // For an inherited probe, the kernel reads the file name again from the forking process's memory, so that
  // fork and clone fail.
  if (inherits && request.inherit.value_or(true) && request.probe() == nullptr)
    event.attr.flags |= abi::kInherit;
  if (at_exec) event.attr.flags |= abi::kEnableOnExec;
  event.name = request.name;
  event.probe_target = request.probe_target;
  return event;
}

bool is_missing(int code) {
  return code == EINVAL || code == ENOSYS || code == ENOENT || code == EOPNOTSUPP || code == ENXIO ||
         code == ENODEV;
}

}  // namespace

Count& Count::operator+=(const Count& more) {
  value += more.value;
  enabled_ns += more.enabled_ns;
  running_ns += more.running_ns;
  return *this;
}

Count Count::operator-(const Count& before) const {
  const auto since = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
  return {since(value, before.value), since(enabled_ns, before.enabled_ns),
          since(running_ns, before.running_ns)};
}

std::uint64_t scaled(const Count& count) {
  if (count.running_ns == 0) return 0;
  if (count.running_ns == count.enabled_ns) return count.value;
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(count.value) * static_cast<double>(count.enabled_ns) /
                   static_cast<double>(count.running_ns)));
}

Result<Counters> Counters::open(const std::vector<EventRequest>& requests, const StatOptions& options,
                                const std::vector<int>& tasks, int command, const Host& host) {
  Counters out;
  const Target& target = options.target;
  const bool is_of_system = target.watch == Watch::System;
  const bool at_exec = target.watch == Watch::Command && options.delay.count() == 0;
  auto cgroups = open_cgroups(target.cgroups);
  if (!cgroups) return std::move(cgroups.error());
  out.cgroups_ = std::move(*cgroups);
  const std::size_t repeats =
      target.has_all_events_in_each ? std::max<std::size_t>(out.cgroups_.size(), 1) : 1;
  if (!target.has_all_events_in_each && out.cgroups_.size() > 1 && out.cgroups_.size() != requests.size())
    return use_error("-G: one cgroup for all events, or one for each event");
  std::vector<int> threads = tasks;
  if (target.watch == Watch::Command) threads = {command};
  if (is_of_system) threads = {-1};
  const std::vector<int> all = !is_of_system         ? std::vector<int>{-1}
                               : target.cpus.empty() ? host.online_cpus
                                                     : target.cpus;
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const EventRequest& request = requests[i];
      PmuFacts facts = facts_of_pmu(request);
      CountedEvent& event = out.events_.emplace_back(
          CountedEvent{counting_event(request, target.inherit && !is_of_system, at_exec),
                       {},
                       request.group,
                       request.option + repeat * requests.size(),
                       std::move(facts.unit),
                       facts.scale});
      if (!out.cgroups_.empty()) {
        const std::size_t which = target.has_all_events_in_each ? repeat : out.cgroups_.size() == 1 ? 0 : i;
        event.cgroup = target.cgroups[which];
        event.planned.cgroup = out.cgroups_[which] ? out.cgroups_[which].get() : -1;
      }
      if (request.probe() != nullptr && !is_of_system && repeat == 0)
        out.notes_.push_back(request.name +
                             ": counted in the threads that exist at the start, since the kernel does not "
                             "inherit probes; -a counts all");
      std::vector<int> cpus = all;
      if (facts.cpus && is_of_system)
        std::erase_if(cpus, [&](int cpu) { return std::ranges::count(*facts.cpus, cpu) == 0; });
      if (auto done = out.open_event_everywhere(out.events_.size() - 1, cpus, threads, host); !done)
        return std::move(done.error());
    }
  }
  return out;
}

Result<> Counters::open_event_everywhere(std::size_t event, const std::vector<int>& cpus,
                                         const std::vector<int>& tasks, const Host& host) {
  CountedEvent& counted = events_[event];
  bool is_refused = false;
  for (const int task : tasks) {
    for (const int cpu : cpus) {
      const auto leader = leader_of(event, cpu, task);
      if (!leader) {  // its leader is not supported
        counted.is_supported = false;
        return Done{};
      }
      // Members of a group are enabled with their leader.
      PlannedEvent planned = counted.planned;
      if (*leader >= 0) planned.attr.flags &= ~std::uint64_t{abi::kDisabled | abi::kEnableOnExec};
      auto fd = open_event(planned, task, cpu, *leader);
      if (fd) {
        counters_.push_back({event, cpu, task, std::move(*fd)});
        continue;
      }
      const int code = fd.error().code;
      if (code == ESRCH && tasks.size() > 1) continue;  // the thread has ended
      if (!is_missing(code) || !planned.probe_target.empty())
        return explain_refusal(planned, cpu, code, host);
      is_refused = true;
    }
  }
  if (is_refused) counted.is_supported = false;
  if (is_refused) std::erase_if(counters_, [event](const Counter& one) { return one.event == event; });
  return Done{};
}

// The descriptor of the event that leads its group; -1: it is in none, or leads it. An error: it has none.
Result<int> Counters::leader_of(std::size_t event, int cpu, int thread) const {
  const CountedEvent& own = events_[event];
  if (own.group == 0) return -1;
  const auto leads = [&](const CountedEvent& other) {
    return other.group == own.group && other.option == own.option;
  };
  const auto first = static_cast<std::size_t>(std::ranges::find_if(events_, leads) - events_.begin());
  if (first == event) return -1;
  for (const Counter& counter : counters_)
    if (counter.event == first && counter.cpu == cpu && counter.thread == thread) return counter.fd.get();
  return Error{"the leader of its group is not open"};
}

Result<> Counters::start() const {
  for (const Counter& counter : counters_)
    if (auto done = enable_event(counter.fd); !done) return done;
  return Done{};
}

void Counters::stop() const {
  for (const Counter& counter : counters_) (void)disable_event(counter.fd);
}

std::vector<Counters::Reading> Counters::read_counters() const {
  std::vector<Reading> readings;
  for (const Counter& counter : counters_) {
    std::array<std::uint64_t, 3> words{};
    // A pinned event (:D) that lost its counter reads nothing, and is not counted.
    if (::read(counter.fd.get(), words.data(), sizeof words) != static_cast<ssize_t>(sizeof words))
      words = {};
    readings.push_back({counter.event, counter.cpu, counter.thread, {words[0], words[1], words[2]}});
  }
  return readings;
}

}  // namespace tacho::record
