// Events that every kernel knows by number: the processor's generic counters, its caches, and software
// events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::record {

struct NamedEvent {
  std::uint32_t type = 0;  // of perf_event_attr
  std::uint64_t config = 0;
};

// "cycles", "L1-dcache-load-misses", "faults": perf's names and their other spellings.
std::optional<NamedEvent> find_named_event(std::string_view name);

// Why a name that looks like one of a cache's events is none: "an instruction cache takes no stores". Empty
// for others.
std::string cache_event_error(std::string_view name);

struct ListedEvent {
  std::string name, alias;  // no alias: empty
  std::string_view kind;    // "Hardware event", "Software event", "Hardware cache event"
};
// Each once, with its main spelling; hardware, software, caches.
std::vector<ListedEvent> named_events();

}  // namespace tacho::record
