#include "format/container/event_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace tacho::format {
namespace {

constexpr std::array<std::string_view, 10> kHardware{
    "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
    "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
constexpr std::array<std::string_view, 12> kSoftware{
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
constexpr std::array<std::string_view, 7> kCaches{"L1-dcache", "L1-icache", "LLC", "dTLB",
                                                  "iTLB",      "branch",    "node"};
constexpr std::size_t kMostTracepointTypes = std::size_t{1} << 20;  // tracepoints
constexpr std::array<std::string_view, 3> kCacheOperations{"load", "store", "prefetch"};

// The modifiers after the colon, by perf's rules: G and H are written if they differ from the default, which
// depends on the other modifiers.
std::string modifiers(const EventAttr& attr) {
  std::string letters;
  bool guest_is_left_out = false;
  if (attr.has(abi::kExcludeKernel) || attr.has(abi::kExcludeUser) || attr.has(abi::kExcludeHv)) {
    if (!attr.has(abi::kExcludeKernel)) letters += 'k';
    if (!attr.has(abi::kExcludeUser)) letters += 'u';
    if (!attr.has(abi::kExcludeHv)) letters += 'h';
    guest_is_left_out = true;
  }
  if (const auto precise = attr.flags >> abi::kPreciseIpShift & 3; precise != 0) {
    letters.append(precise, 'p');
    guest_is_left_out = true;
  }
  if (attr.has(abi::kExcludeHost) || attr.has(abi::kExcludeGuest) == guest_is_left_out) {
    if (!attr.has(abi::kExcludeHost)) letters += 'H';
    if (!attr.has(abi::kExcludeGuest)) letters += 'G';
  }
  if (!letters.empty()) letters.insert(0, 1, ':');
  return letters;
}

std::string cache_name(std::uint64_t config) {
  const auto cache = config & 0xff, operation = config >> 8 & 0xff, result = config >> 16 & 0xff;
  if (cache >= kCaches.size() || operation >= kCacheOperations.size() || result > 1)
    return "unknown-ext-hardware-cache-type";
  const std::string_view ending = result == 1 ? "-misses" : operation == 2 ? "es" : "s";
  return std::string(kCaches[cache]).append("-").append(kCacheOperations[operation]).append(ending);
}

std::string name_of_tracepoint(const TracepointFormat& format) {
  constexpr std::string_view kName = "name: ";
  const std::string_view text = format.text;
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + kName.size());
  // Longer names are refused: both are names of folders in tracefs, and each event keeps a copy.
  constexpr std::size_t kLongest = 255;
  return format.system.substr(0, kLongest) + ':' +
         std::string(rest.substr(0, std::min(rest.find('\n'), kLongest)));
}

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace

void EventNames::add_tracepoints(const TracingData& tracing, EventSet& events) {
  tracepoints_.clear();
  for (const TracepointFormat& format : tracing.formats)
    if (const auto id = tracepoint_id(format.text)) tracepoints_.try_emplace(*id, name_of_tracepoint(format));
  for (const auto& [id, name] : tracepoints_) name_waiting(events, id, name);
}

void EventNames::name_waiting(EventSet& events, std::uint64_t id, const std::string& name) {
  if (name.empty()) return;
  const auto [first, last] = waiting_.equal_range(id);
  for (auto waits = first; waits != last; ++waits)
    if (events[waits->second].name_is_made) events.make_name(waits->second, name);
  waiting_.erase(first, last);
}

void EventNames::add_event_type(Cursor type, EventSet& events) {
  const std::uint64_t id = type.u64();
  const std::string name(type.text(kTypeSize - sizeof id));
  if (type.failed() || tracepoints_.size() >= kMostTracepointTypes) return;
  const auto [known, is_new] = tracepoints_.try_emplace(id, name);
  if (is_new) name_waiting(events, id, name);
}

std::string EventNames::name_for(const EventAttr& attr) const {
  switch (attr.type) {
    case abi::kHardware:
      return (attr.config < kHardware.size() ? std::string(kHardware[attr.config]) : "unknown-hardware") +
             modifiers(attr);
    case abi::kSoftware:
      return (attr.config < kSoftware.size() ? std::string(kSoftware[attr.config]) : "unknown-software") +
             modifiers(attr);
    case abi::kHwCache:
      return cache_name(attr.config) + modifiers(attr);
    case abi::kRaw:
      return "raw " + hexadecimal(attr.config) + modifiers(attr);
    case abi::kTracepoint: {
      const auto found = tracepoints_.find(attr.config);
      return found == tracepoints_.end() || found->second.empty() ? "unknown tracepoint" : found->second;
    }
    default:
      return "unknown attr type: " + std::to_string(attr.type);
  }
}

void EventNames::name_event(EventSet& events, std::size_t event) {
  if (!events[event].name.empty()) return;
  const EventAttr& attr = events[event].attr;
  const auto known = tracepoints_.find(attr.config);
  if (attr.type == abi::kTracepoint && (known == tracepoints_.end() || known->second.empty()))
    waiting_.emplace(attr.config, event);
  events.make_name(event, name_for(attr));
}

void EventNames::apply(EventSet& events, std::span<const Event> described) {
  if (described.size() != events.size()) return;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (!described[i].name.empty()) events.set_name(i, described[i].name);
}

}  // namespace tacho::format
