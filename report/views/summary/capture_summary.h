// What there is to see in a capture, gathered in one run: samples of each event, the heaviest processes and
// functions, waits, fields of payloads, what was lost and what has no name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/decode/payload.h"
#include "report/query/capture_gaps.h"
#include "report/query/summary.h"
#include "report/samples/session.h"

namespace tacho::report {

struct EventSummary {
  // What the event measures: Clock and Counter are taken every so often, Other at each time that it happens.
  enum class Kind : std::uint8_t { Clock, Counter, Tracepoint, Payload, Other };
  std::string name;
  Kind kind = Kind::Other;
  std::uint64_t samples = 0;
  std::uint64_t period = 0;                // of all samples; where all periods are 0: the samples
  std::string unit;                        // of the period
  std::optional<std::uint64_t> frequency;  // samples a second that were asked for
  bool has_stacks = false;                 // some sample has a call chain
};

// What rows weigh: samples, and the period of the chosen event.
struct SummaryWeight {
  std::uint64_t samples = 0, period = 0;
};
struct ProcessSummary {
  std::uint32_t pid = 0;
  std::string_view comm;
  std::uint64_t threads = 0;  // with samples
  std::uint64_t samples = 0;  // of all events
  std::uint64_t period = 0;   // of the chosen event
};
struct FunctionSummary {
  std::string name;         // of code without one: the address
  std::string_view module;  // its short name; empty: nothing was mapped there
  SummaryWeight weight;
};
struct WaitSummary {
  std::string_view comm;  // of the thread that waited
  std::string function;   // the innermost of the program; without one, of the kernel outside of its scheduler
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
  bool is_value = false;    // the one that `tacho hist` shows
  bool is_counted = false;  // of values that were counted in the kernel: no sample has the time of one
  Summary values;
};

struct CaptureSummary {
  std::uint64_t samples = 0;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> time;  // of the first and the last sample, ns
  std::uint64_t lost = 0;
  NamedFrames names;
  std::vector<EventSummary> events;  // those with samples, most samples first
  // The event whose period rows are ordered by: a clock, else a counter, else the one with most samples. Its
  // number in `events`; nothing: there are no samples.
  std::optional<std::size_t> chosen;
  // Functions are those where samples were taken. Of events that are no clock and no counter, which are taken
  // in the kernel, they are the innermost of the program in each call chain.
  bool functions_are_callers = false;
  std::size_t processes = 0, functions = 0;  // how many there are
  std::vector<ProcessSummary> heaviest_processes;
  std::vector<FunctionSummary> heaviest_functions;
  std::optional<WaitsSummary> waits;  // nothing: no event is a wait
  std::vector<FieldSummary> fields;   // numbers with a unit of BPF events
};

// `most`: of each list of heaviest ones. `run` gives the samples of the session to a sink, whose head was
// read. Texts live as long as the session.
CaptureSummary summarize(Session& session, std::size_t most, const std::function<void(Sink&)>& run);

}  // namespace tacho::report
