// Performance monitoring units as sysfs describes them: their numbers, the fields of their configuration, and
// the events that they have names for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

struct PmuField {
  std::string name;
  int word = 0;  // 0: config, 1: config1, 2: config2
  // Bits of the word, first and last of each run; the value's bits go there from the lowest on.
  std::vector<std::pair<int, int>> bits;
};
// "config:0-7,32-35"; nothing when it is not understood.
std::optional<PmuField> parse_pmu_field(std::string_view name, std::string_view text);
// The largest value that the field has room for.
std::uint64_t largest_value(const PmuField& field);
// The value's bits where the field has them.
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
  // Those that a name stands for: itself, a glob, or a family whose members are numbered; "uncore_" may be
  // left out.
  std::vector<Pmu> matching(std::string_view name) const;
  // The first that has an event of that name.
  std::optional<std::pair<Pmu, std::string>> with_event(std::string_view event) const;
  std::optional<Pmu> read(const std::string& name) const;

 private:
  std::string folder_;
};

}  // namespace tacho::record
