// What events are called: as their capture says, or as perf names them by their attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "format/event_attr.h"
#include "format/event_set.h"
#include "format/tracing_data.h"

namespace tacho::format {

class EventNames {
 public:
  EventNames() = default;
  // Names of tracepoints stand in their descriptions.
  explicit EventNames(const TracingData& tracing);

  // "cpu-clock:u", "L1-dcache-load-misses", "sched:sched_switch": what perf calls an event whose capture has
  // no name for it.
  std::string of(const EventAttr& attr) const;
  // Gives every event its one name: that of its description, where all events have one; else the one that the
  // capture gave it before; else by its attributes.
  void give(EventSet& events, std::span<const Event> described) const;

 private:
  std::unordered_map<std::uint64_t, std::string> tracepoints_;  // by their numbers
};

}  // namespace tacho::format
