// Collects the facts for tacho summary in one reading: samples by event, the heaviest processes and
// functions, waits, fields of payloads, lost samples, frames without names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/query/expressions.h"
#include "report/query/gather.h"
#include "report/samples/session.h"

namespace tacho::report {

struct EventSummary {
  // Samples of a Clock or Counter are taken periodically, those of the others each time the event happens.
  enum class Kind : std::uint8_t { Clock, Counter, Tracepoint, Payload, Other };
  std::string name;
  Kind kind = Kind::Other;
  std::uint64_t samples = 0;
  std::uint64_t period = 0;                // sum of all periods; the number of samples when all are 0
  std::string unit;                        // of the period
  std::optional<std::uint64_t> frequency;  // requested samples per second (-F)
  bool has_stacks = false;                 // any sample has a call chain
};

// The weight of a row: samples, and the period of the chosen event.
struct SummaryWeight {
  std::uint64_t samples = 0, period = 0;

  SummaryWeight& operator+=(const SummaryWeight& other) {
    samples += other.samples;
    period += other.period;
    return *this;
  }
};
struct ProcessSummary {
  std::uint32_t pid = 0;
  std::string_view comm;
  std::uint64_t threads = 0;              // with samples of any event
  std::uint64_t samples = 0, period = 0;  // of the chosen event
};
struct FunctionSummary {
  std::string name;         // the address for code without a name
  std::string_view module;  // its short name; empty: nothing was mapped there
  SummaryWeight weight;
};
struct WaitSummary {
  std::string_view comm;  // of the thread that waited
  // The innermost user function; without one, the innermost kernel function outside the scheduler.
  std::string function;
  std::uint64_t waits = 0, time = 0;  // ns
};
struct WaitsSummary {
  std::uint64_t waits = 0, time = 0, longest = 0;  // ns
  bool has_wakers = false;
  std::vector<WaitSummary> heaviest;
};
struct FieldSummary {
  std::size_t event = 0;  // in CaptureSummary::events
  std::string name, unit;
  bool is_value = false;    // the field that `tacho hist` shows by default
  bool is_counted = false;  // values were counted in the kernel, so single ones have no time
  bool has_slots = false;   // they were counted in slots: all but `min` are upper ends of slots
  Summary values;
};

struct CaptureSummary {
  std::uint64_t samples = 0;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> time;  // first and last sample, ns
  std::uint64_t lost = 0;
  std::uint64_t late = 0;  // samples of events that a pipe described too late, only in `samples` and `time`
  NamedFrames names;
  bool is_packed = false;            // the capture has a symbol pack
  std::vector<EventSummary> events;  // events with samples, most samples first
  // Index in `events` of the event by whose period rows are sorted: a clock, else a counter, else the event
  // with most samples. nullopt: no samples.
  std::optional<std::size_t> chosen;
  // False: functions are those in which samples were taken. True, if no clock or counter is chosen and
  // samples have call chains: functions are the innermost user function of each chain.
  bool functions_are_callers = false;
  std::size_t processes = 0;  // with samples of any event
  std::size_t functions = 0;  // with samples of the chosen event
  std::vector<ProcessSummary> heaviest_processes;
  std::vector<FunctionSummary> heaviest_functions;
  std::optional<WaitsSummary> waits;  // nullopt: no event is a wait
  std::vector<FieldSummary> fields;   // numeric fields with a unit, of BPF events
};

// What NamedFrames counts. Frames: its `addresses` are those of functions, which take less memory than all.
enum class CountedAddresses : std::uint8_t { Frames, FramesAndAddresses };

// `most` limits each list of the heaviest. `run` passes the samples of the session, whose head was read, to a
// sink. Texts are valid as long as the session.
CaptureSummary summarize(Session& session, std::size_t most, CountedAddresses counted,
                         const std::function<void(Sink&)>& run);

}  // namespace tacho::report
