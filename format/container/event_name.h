// Names of events: those in the capture, or else the names that perf makes from their attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "format/base/cursor.h"
#include "format/base/seeded_hash.h"
#include "format/extensions/tracing_data.h"
#include "format/records/event_attr.h"
#include "format/records/event_set.h"

namespace tacho::format {

class EventNames {
 public:
  // Reads the names of tracepoints, which replace the names read before, and names the events that waited for
  // them. An event that has a name keeps it.
  void add_tracepoints(const TracingData& tracing, EventSet& events);

  // The same for one tracepoint that is not known yet, as perf up to Linux 3.9 describes it: u64 id,
  // name[64].
  static constexpr std::size_t kTypeSize = 72;  // bytes
  void add_event_type(Cursor type, EventSet& events);

  // perf's name for attributes: "cpu-clock:u", "L1-dcache-load-misses", "sched:sched_switch".
  std::string name_for(const EventAttr& attr) const;
  // Names an event by its attributes, unless it has a name. A tracepoint waits for add_tracepoints() if its
  // name is not known yet.
  void name_event(EventSet& events, std::size_t event);
  // Names the events as section EVENT_DESC does, if it describes all of them.
  static void apply(EventSet& events, std::span<const Event> described);

 private:
  void name_waiting(EventSet& events, std::uint64_t id, const std::string& name);

  std::unordered_map<std::uint64_t, std::string, SeededHash> tracepoints_;  // by id
  // Events by the tracepoint id that they wait for: each is named once, however often tracing data comes.
  std::unordered_multimap<std::uint64_t, std::size_t, SeededHash> waiting_;
};

}  // namespace tacho::format
