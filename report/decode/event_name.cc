#include "report/decode/event_name.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "report/decode/payload.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::array<std::string_view, 10> kHardware{
    "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
    "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
constexpr std::array<std::string_view, 12> kSoftware{
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
constexpr std::array<std::string_view, 7> kCaches{"L1-dcache", "L1-icache", "LLC", "dTLB",
                                                  "iTLB",      "branch",    "node"};
constexpr std::array<std::string_view, 3> kCacheOperations{"load", "store", "prefetch"};

// The letters after the colon, in perf's own logic: host and guest are named when they differ from the
// default, and the default depends on the other letters.
std::string modifiers(const format::EventAttr& attr) {
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
  return fmt::format("{}-{}{}", kCaches[cache], kCacheOperations[operation],
                     result == 1      ? "-misses"
                     : operation == 2 ? "es"
                                      : "s");
}

std::string tracepoint_name(std::uint64_t id, const format::TracingData& tracing) {
  for (const auto& format : tracing.formats) {
    if (tracepoint_id(format.text) != id) continue;
    const std::string_view text = format.text;
    constexpr std::string_view kName = "name: ";
    const auto at = text.find(kName);
    if (at == std::string_view::npos) break;
    const std::string_view rest = text.substr(at + kName.size());
    return format.system + ':' + std::string(rest.substr(0, rest.find('\n')));
  }
  return "unknown tracepoint";
}

bool is_by_number(const format::EventAttr& attr) {
  return attr.type == abi::kHardware || attr.type == abi::kSoftware;
}

}  // namespace

std::string event_name(const format::Event& event, const format::Features& features) {
  // Without descriptions in the header, a name is only what the reader made of the event's number.
  if (!event.name.empty() && (!features.event_descriptions.empty() || !is_by_number(event.attr)))
    return event.name;
  const auto& attr = event.attr;
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
      return fmt::format("raw {:#x}", attr.config) + modifiers(attr);
    case abi::kTracepoint:
      return tracepoint_name(attr.config, features.tracing);
    default:
      return fmt::format("unknown attr type: {}", attr.type);
  }
}

}  // namespace tacho::report
