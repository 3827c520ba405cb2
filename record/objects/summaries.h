// Summaries: what BPF programs counted in maps (SUMMARY() in tacho/event.h), as one sample for each key, at
// the end of a recording and with --interval in between.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bpf/object/summary_layout.h"
#include "bpf/rings/map_reader.h"
#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/channel_rings.h"
#include "record/opened_recording.h"

namespace tacho::record {

// When summaries are read besides the end.
struct SummaryReading {
  std::optional<std::chrono::milliseconds> interval;
  bool is_split = false;     // the recording goes on in other files, each with what came in its time
  bool is_switched = false;  // events may be switched off and on again meanwhile
};

class Summaries {
 public:
  // Summaries of the loaded objects, and of probes that count. What is passed must outlive it.
  static Result<Summaries> open(const OpenedRecording& recording, const KernelEvents& events,
                                const SummaryReading& reading);

  bool empty() const { return sources_.empty(); }
  // Whether an interval makes a difference: some maps count events, others hold current values.
  bool are_read_at_intervals() const;
  // Samples of these events of the plan are switched on: what programs counted before, as they never stop,
  // is left out. Or off: what came until now is read and waits for take(); what comes later is left out.
  // The next read() returns the error.
  void switch_samples(std::span<const std::size_t> events, Sampling now);
  bool is_due() const;
  // How long that takes, `most` at most.
  std::chrono::milliseconds until_due(std::chrono::milliseconds most) const;
  // Reads the maps of all events that are on; what came since the last time waits for take(). `is_last`:
  // also values that are reported once, at the end, of events that were ever on.
  Result<> read(bool is_last);
  // Appends waiting whole records, up to `most` bytes or one record. Throws std::bad_alloc if there is no
  // memory; the records then stay.
  void take(std::vector<std::byte>& to, std::size_t most);
  bool has_more() const { return taken_ < waiting_.size(); }

  // Entries that found no space in their map; any thread may call it.
  std::vector<Losses> losses() const;
  // A line for each thing that the numbers lack.
  std::vector<std::string> troubles() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    std::vector<std::byte> value;  // where the next reading needs it
    std::uint64_t reading = 0;     // the last one that saw it
  };
  struct Source {
    // One of the two: an index of the objects, or of Plan::argument_probes.
    std::optional<std::size_t> object, probe;
    std::size_t event = 0;
    std::string map, name;
    bpf::SummaryLayout layout;
    bpf::MapReader reader;
    std::vector<bpf::MapReader> stacks = {};  // as many as layout.stack_maps()
    std::uint64_t id = 0;
    std::uint32_t cpu = 0;
    bool keeps = false;  // values until the next reading
    bool is_on = false, was_ever_on = false;
    std::unordered_map<std::string, Known> known = {};
    std::uint64_t readings = 0, forgotten = 0, without_stack = 0, too_large = 0;
    bool is_full = false;
  };
  Summaries(const OpenedRecording& recording, const SummaryReading& reading)
      : recording_(&recording), reading_(reading) {}
  static Result<Source> open_source(const OpenedRecording& recording, const Connection& connection,
                                    const bpf::Channel& channel);
  static Result<> find_event(Source& source, const KernelEvents& events);
  // Runs the iterators of the objects whose maps are read now, once for each object.
  Result<> gather(const std::vector<Source*>& due) const;
  bool waits_for_time() const;
  std::uint64_t take_time(bool is_last);
  Result<> read(Source& source, bool is_reported, std::uint64_t time);
  void write_sample(Source& source, const bpf::SummaryLayout::Sample& sample, std::uint64_t time);

  const OpenedRecording* recording_;
  SummaryReading reading_;
  std::vector<Source> sources_;
  std::vector<std::byte> waiting_;           // records
  std::size_t taken_ = 0;                    // bytes of them
  Clock::time_point due_at_ = Clock::now();  // of the next reading of --interval
  std::optional<Error> failure_;             // of a reading when an event was switched off
};

}  // namespace tacho::record
