// Names of events: PMUs of sysfs with their fields and events, and the kernel's own software, hardware and
// cache events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"

namespace tacho::record {

struct PmuField {
  std::string name;
  int word = 0;  // 0: config, 1: config1, 2: config2
  // Bit ranges of the word (first, last); the value's bits are placed there from the lowest on.
  std::vector<std::pair<int, int>> bits;
};
// "config:0-7,32-35"; nothing when it is not understood.
std::optional<PmuField> parse_pmu_field(std::string_view name, std::string_view text);
// The largest value of the field.
std::uint64_t largest_value(const PmuField& field);
// The value's bits at the field's places in the word.
std::uint64_t placed(const PmuField& field, std::uint64_t value);

struct PmuEvent {
  std::string name;   // "cpu-cycles"
  std::string terms;  // "event=0x3c"
};

struct Pmu {
  std::string name;
  std::uint32_t type = 0;  // of perf_event_attr
  std::vector<PmuField> fields;
  std::vector<PmuEvent> events;  // in alphabetical order
};

class Pmus {
 public:
  explicit Pmus(std::string folder = "/sys/bus/event_source/devices") : folder_(std::move(folder)) {}

  std::vector<std::string> names() const;  // in alphabetical order
  // The PMUs that `name` selects: it is a PMU's name, a pattern, or the common part of numbered PMUs
  // (uncore_imc for uncore_imc_0). "uncore_" may be omitted.
  std::vector<Pmu> matching(std::string_view name) const;
  // The first PMU with an event of that name, and the event's terms.
  std::optional<std::pair<Pmu, std::string>> with_event(std::string_view event) const;
  std::optional<Pmu> read_pmu(const std::string& name) const;

 private:
  std::string folder_;
};

// The kernel's generic events: hardware counters, caches, and software events.

struct NamedEvent {
  std::uint32_t type = 0;  // of perf_event_attr
  std::uint64_t config = 0;
};

// "cycles", "L1-dcache-load-misses", "faults": perf's names and their other spellings.
std::optional<NamedEvent> find_named_event(std::string_view name);

// Why there is no such cache event: "L1-icache takes no stores". Empty: the name is not a cache event's, or
// is valid.
std::string cache_event_error(std::string_view name);

struct ListedEvent {
  std::string name, alias;  // no alias: empty
  std::string_view kind;    // "Hardware event", "Software event", "Hardware cache event"
};
// All generic events, each once: hardware, software, caches.
std::vector<ListedEvent> named_events();

// An error at one column of the text of -e, with a caret below it (cli/message_text.h):
//
//   -e open/min_us=x/: column 13: min_us: 'x' is not a number
//       open/min_us=x/
//                   ^
Error error_at(std::string_view text, std::size_t at, std::string_view what);

// A unique name for an event of an object: `name`, or "name.2", ... if that is taken.
std::string distinct_name(const std::string& name, const std::function<bool(const std::string&)>& is_taken);

}  // namespace tacho::record
