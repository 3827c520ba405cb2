// The text after -e as values. Parsing only: whether a tracepoint or a map exists is found out later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

enum class EventKind : std::uint8_t { Software, Tracepoint, BpfObject };

// "map:channel.event=evt": what the map `channel` emits is a sample of the event `evt`.
struct MapBinding {
  std::string map, event;
  bool operator==(const MapBinding&) const = default;
};

struct EventRequest {
  EventKind kind = EventKind::Software;
  std::string text;          // as written, for messages
  std::string name;          // what the capture calls it; empty for an object
  std::uint64_t config = 0;  // of perf_event_attr; a tracepoint's is its number, found by find_tracepoints()

  std::string system, tracepoint;    // Tracepoint; both may be globs
  std::string path;                  // BpfObject
  std::vector<MapBinding> bindings;  // BpfObject; empty: an event for each of its channels

  std::optional<std::uint64_t> period, frequency;  // events; Hz
  bool exclude_user = false, exclude_kernel = false;
  bool inherit = true;

  std::size_t option = 0;  // which -e it stands in, counted from 1
  std::string filter;      // Tracepoint: of --filter and --exclude-perf
};

// "cpu-clock:u,sched:sched_switch,./prog.bpf.o/map:channel.event=evt/". An error names the letter where the
// text stops making sense.
Result<std::vector<EventRequest>> parse_events(std::string_view text);

// Names of the events that need no kernel to be asked: for messages.
std::vector<std::string> software_event_names();

}  // namespace tacho::record
