// A BPF object in the kernel: loaded, its programs attached. Destroying it detaches everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/attach/function_probes.h"
#include "bpf/attach/raw_program.h"
#include "bpf/object/btf_schema.h"
#include "bpf/object/channel.h"
#include "bpf/object/object.h"
#include "bpf/rings/map_reader.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/section.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/environment.h"

namespace tacho::bpf {

// Rate limits of an object's events; 0: none.
struct EventRate {
  std::uint32_t one_in = 0;  // every n-th event
  std::uint64_t most_a_second = 0;

  bool limits() const { return one_in > 1 || most_a_second != 0; }
  bool operator==(const EventRate&) const = default;
};

// An opened object, and the settings with which its programs are loaded. UserObject checks and collects them.
struct ObjectSettings {
  std::string path;         // as the user gave it
  bool is_shipped = false;  // an embedded recorder
  std::vector<std::byte> elf, btf;
  Declarations declared;
  std::vector<Channel> channels;
  FunctionTargets functions;
  std::vector<std::pair<std::string, std::vector<std::byte>>>
      constants;                        // values of `const volatile` globals
  EventRate rate;                       // if the object applies it
  std::optional<int> table_of_threads;  // if the object uses it
};

class LoadedObject {
 public:
  // Loads the object and attaches its programs: alternatives are tried in order. Perf event arrays get a slot
  // for each possible CPU. An error: a required program, or all alternatives of a group, cannot be loaded or
  // attached. `walk`: the object with the unwinder linked into it, or nothing. `log`: chosen alternatives,
  // rejected programs with reasons.
  static Result<LoadedObject> load(const ObjectSettings& settings, const LinkedWalk& walk, const Log& log);

  const std::string& path() const { return path_; }
  bool is_shipped() const { return is_shipped_; }
  const std::vector<Channel>& channels() const { return channels_; }
  // All its programs, with the reasons of those that were not loaded.
  const std::vector<format::AttachedProgram>& programs() const { return programs_; }
  // The object's BTF; empty: none.
  const std::vector<std::byte>& btf() const { return btf_; }
  // Ids of programs that can make perf events on their tracepoint miss samples (kernel_btf.h).
  std::vector<std::uint32_t> dropping_programs() const;
  // The number of functions that could not be probed.
  std::size_t unprobed_functions() const { return object_.unprobed_functions(); }

  // Puts a bpf-output event's descriptor, opened on exactly that CPU, into the map's slot.
  Result<> connect_channel(std::string_view map, int cpu, int event_fd);
  // Attaches a program of UserObject::perf_event_programs() (Object::attach_to_event()). Does nothing if an
  // alternative runs instead.
  Result<format::Fd> attach_to_perf_event(std::string_view program, int event_fd);
  // Opens the ring buffer of a channel, which belongs to the object.
  Result<Ring> open_ring(const std::string& map) const;
  // Opens the map of a summary, or one of its stack maps.
  Result<MapReader> open_map(const std::string& map) const;
  // The object's only stack map; empty: none or several.
  std::string stack_map() const;

  // Enables or disables its events; at first they are disabled. Programs with tacho/emit.h do nothing while
  // they are disabled.
  void want_events(bool wanted);
  // Whether a program at_begin (SEC("iter/task"), programs/recorders/before.h) reads user stacks of sleeping
  // threads.
  bool asks_for_sleeping_stacks() const;
  // Adds such a stack: context switches of the thread, and addresses, leaf first.
  Result<> put_sleeping_stack(std::uint32_t thread, std::uint64_t switches,
                              std::span<const std::uint64_t> frames) const;
  // Runs the program at_begin, when events are enabled.
  Result<> run_at_begin() const;
  // Runs the programs of SEC("syscall"): once, at the end of a recording while events are enabled, before the
  // last reading of summaries.
  Result<> run_at_end() const;
  bool has_iterators() const;
  // Runs the iterators, which fill maps of summaries: once before each reading. ETIMEDOUT: one did not end in
  // time.
  Result<> run_iterators(RunUntil until) const;

  // Events dropped by EventRate::most_a_second.
  std::uint64_t events_over_rate() const;
  // Events lost so far because a ring buffer with headers or a summary's map was full.
  std::uint64_t lost_by_ring(const std::string& map) const;
  // Calls that were nested deeper than the kernel can follow returns (programs/recorders/too_deep.h): in all,
  // and by function, most first.
  std::uint64_t too_deep() const;
  std::vector<std::pair<std::string, std::uint64_t>> too_deep_by_function() const;
  // Waits and calls whose end the kernel did not trace (programs/recorders/unseen_ends.h).
  std::uint64_t unseen_ends() const;
  // Recursion misses of all programs: runs that the kernel skipped, since the program was running on that
  // CPU.
  std::uint64_t recursion_misses() const;

 private:
  class Loading;
  explicit LoadedObject(Object object) : object_(std::move(object)) {}
  bool has_loaded(Hook hook) const;
  Result<> run_programs(Hook hook, RunUntil until) const;

  std::string path_;
  bool is_shipped_ = false;
  std::vector<std::byte> btf_;
  std::vector<Channel> channels_;
  std::vector<format::AttachedProgram> programs_;
  std::vector<std::string> functions_;  // names of those that are probed
  Object object_;
  std::vector<std::size_t> loaded_;  // indexes of programs
  format::Fd statistics_;            // open while the kernel counts runs of programs
};

}  // namespace tacho::bpf
