// What events are called: as their capture says, or as perf names them by their attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "format/base/seeded_hash.h"
#include "format/extensions/tracing_data.h"
#include "format/records/event_attr.h"
#include "format/records/event_set.h"

namespace tacho::format {

class EventNames {
 public:
  // Names of tracepoints stand in their descriptions, which replace those of before. Events that waited for
  // theirs get them; a name that an event has stays.
  void learn(const TracingData& tracing, EventSet& events);

  // "cpu-clock:u", "L1-dcache-load-misses", "sched:sched_switch": what perf calls an event whose capture has
  // no name for it.
  std::string of(const EventAttr& attr) const;
  // Gives the event a name by its attributes, unless it has one. A tracepoint that is not described yet
  // waits.
  void make(EventSet& events, std::size_t event);
  // Gives every event the name of its description, where all events have one.
  static void take(EventSet& events, std::span<const Event> described);

 private:
  std::unordered_map<std::uint64_t, std::string, SeededHash> tracepoints_;  // by their numbers
  // By the numbers that they wait for. So each event is named once, however often descriptions come.
  std::unordered_multimap<std::uint64_t, std::size_t, SeededHash> waiting_;
};

}  // namespace tacho::format
