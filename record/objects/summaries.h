// Summaries: maps in which BPF programs count (SUMMARY() in tacho/event.h). They are read at the end of a
// recording, and with --interval also in between; each key becomes a sample.
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
#include "record/objects/ring_event.h"
#include "record/opened_recording.h"

namespace tacho::record {

// When summaries are read before the end.
struct SummaryReading {
  std::optional<std::chrono::milliseconds> interval;
  bool is_split = false;     // the recording is split into several files, each with its own counts
  bool is_switched = false;  // events may be disabled and enabled meanwhile
};

class Summaries {
 public:
  // Opens the summaries of the loaded objects, and of probes that count. The arguments must outlive the
  // result.
  static Result<Summaries> open(const OpenedRecording& recording, const KernelEvents& events,
                                const SummaryReading& reading);

  bool empty() const { return sources_.empty(); }
  // Whether --interval has an effect: there is a map that is read at intervals.
  bool are_read_at_intervals() const;
  // Samples of these events of the plan are enabled or disabled. Programs never stop counting, so counts from
  // before enabling are ignored; when disabling, the counts so far are read for take_samples(). The next
  // read_maps() returns an error.
  void switch_samples(std::span<const std::size_t> events, Sampling now);
  bool is_due() const;
  // The time until is_due(), at most `most`.
  std::chrono::milliseconds until_due(std::chrono::milliseconds most) const;
  // Reads the maps of all enabled events; take_samples() returns the differences to the last reading.
  // `is_last`: also values that are reported once, at the end, of events that were ever enabled.
  Result<> read_maps(bool is_last);
  // Appends whole records of readings, up to `most` bytes but at least one. Throws std::bad_alloc and keeps
  // the records if there is no memory.
  void take_samples(std::vector<std::byte>& to, std::size_t most);
  bool has_more() const { return taken_ < waiting_.size(); }

  // Entries for which a map had no room. Any thread may call it.
  std::vector<Losses> losses() const;
  // Messages about missing counts.
  std::vector<std::string> troubles() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    std::vector<std::byte> value;  // at the last reading, if the next one needs it
    std::uint64_t reading = 0;     // number of the last reading with this key
  };
  struct Source {
    // One of the two: an index of the objects, or of Plan::argument_probes.
    std::optional<std::size_t> object, probe;
    std::size_t event = 0;
    std::string map, name;
    bpf::SummaryLayout layout;
    OwnNumbers own;
    bpf::MapReader reader;
    std::vector<bpf::MapReader> stacks = {};  // in the order of layout.stack_maps()
    std::uint64_t id = 0;
    std::uint32_t cpu = 0;
    bool keeps = false;  // keeps values for the next reading
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
  // Runs the iterators of the objects whose maps are due, once for each object.
  Result<> gather(const std::vector<Source*>& due) const;
  bool waits_for_time() const;
  std::uint64_t take_time(bool is_last);
  Result<> read_source(Source& source, bool is_reported, std::uint64_t time);
  void write_sample(Source& source, const bpf::SummaryLayout::Sample& sample, std::uint64_t time);

  const OpenedRecording* recording_;
  SummaryReading reading_;
  std::vector<Source> sources_;
  std::vector<std::byte> waiting_;           // records for take_samples()
  std::size_t taken_ = 0;                    // bytes of these that were taken
  Clock::time_point due_at_ = Clock::now();  // time of the next reading of --interval
  std::optional<Error> failure_;             // of a reading when an event was disabled
};

}  // namespace tacho::record
