// A user's BPF object, or an embedded recorder: its channels, settings and programs, loaded and attached.
//
//   auto object = UserObject::open("bigreads.bpf.c", options);
//   object->load_and_attach();              // alternatives tried in order; maps exist from here on
//   object->connect("channel", cpu, fd);    // a bpf-output event of that CPU
//
// Destroying it detaches everything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/attach/function_probes.h"
#include "bpf/attach/raw_program.h"
#include "bpf/object/btf_schema.h"
#include "bpf/object/channel.h"
#include "bpf/object/constant_value.h"
#include "bpf/rings/map_reader.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

struct ObjectOptions {
  Log log;  // for -v: chosen alternatives, rejected programs with reasons, libbpf's warnings
  std::function<bool()> stop = {};  // polled while a compiler runs; true ends it
};

// Rate limits of an object's events; 0: none.
struct EventRate {
  std::uint32_t one_in = 0;  // every n-th event
  std::uint64_t most_a_second = 0;

  bool limits() const { return one_in > 1 || most_a_second != 0; }
  bool operator==(const EventRate&) const = default;
};

// A `const volatile` global with a HELP text.
struct ObjectOption {
  std::string name, type, help;
};

// The sections of a set of programs, which are loaded all or none: "tp_btf/sys_enter".
struct Hooks {
  std::vector<std::string> sections;
  std::string group;  // of alternatives; empty: none
  bool optional = false;
};

class UserObject {
 public:
  // `path`: an ELF object, or C source ending in .c, which is compiled (compile.h). Refused if users other
  // than root and this one could change it.
  static Result<UserObject> open(const std::string& path, const ObjectOptions& options);
  // An embedded recorder (shipped_files.h); `name` replaces its path.
  static Result<UserObject> open_shipped(const std::string& name, format::Bytes elf,
                                         const ObjectOptions& options);
  UserObject(UserObject&&) noexcept;
  UserObject& operator=(UserObject&&) noexcept;
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  ~UserObject();

  const std::string& path() const;  // as the user gave it
  bool is_shipped() const;          // an embedded recorder
  const std::vector<Channel>& channels() const;
  // Ring buffers of kUnfinished (in-flight calls), and their events.
  std::vector<std::pair<std::string, std::string>> unfinished_channels() const;
  // The globals with HELP(text).
  std::vector<ObjectOption> constants() const;
  // Sections of its programs; preferred alternatives first.
  std::vector<Hooks> hooks() const;

  // Sets a `const volatile` global (constant_value.h); before load_and_attach().
  std::optional<ConstantFault> set_constant(std::string_view name, std::optional<std::string_view> value);

  // Records only threads of this table (follower.h), which must outlive the object; before load_and_attach().
  // False: the object does not call tacho_wants() (tacho/emit.h) and emits events of all threads.
  bool follow(int table_fd);
  // Sets rate limits; before load_and_attach(). False: as for follow().
  bool limit(const EventRate& rate);
  // Whether its programs evaluate a condition of --filter: before an event's members are set (tacho_wants()),
  // or after (tacho_wants_this(), tacho_submit()).
  bool supports_filter() const;
  bool supports_filter_of(const Channel& channel) const;
  // Sets the condition of all programs, or of one channel, which may compare payload members; before
  // load_and_attach().
  void filter(std::span<const FilterStep> steps);
  void filter(const Channel& channel, std::span<const FilterStep> steps);

  // Whether it has programs for functions that the caller has to choose.
  bool wants_functions() const;
  // The functions named in the sections of its programs, required ones first; empty: any function.
  std::vector<std::string> wanted_functions() const;
  void follow_functions(FunctionTargets targets);
  // The number of functions that could not be probed; after load_and_attach().
  std::size_t unprobed_functions() const;
  // Sets a reserved `const volatile` global, if the object has one of that name and size; before
  // load_and_attach().
  void set_own(const std::string& name, format::Bytes bytes);
  // Replaces the last field of payloads, if it is called `field`, by fields of 64 bits; before
  // load_and_attach().
  void set_fields(std::string_view field, const std::vector<format::PayloadField>& instead);
  // The value of a `const volatile` global; empty: there is none.
  std::vector<std::byte> constant(std::string_view name) const;

  // How its programs can use the unwinder, for stacks without frame pointers.
  WalkUse walk_use() const;
  // Links the unwinder into its programs, with these maps of a StackWalker, which must stay open until
  // load_and_attach(). Without maps, or on an error, it is not linked.
  Result<> walk_stacks(MapsByName maps);

  // Enables or disables its events (at first they are disabled); after load_and_attach(). Programs with
  // tacho/emit.h do nothing while they are disabled.
  void want_events(bool wanted);

  // Whether a program at_begin (SEC("iter/task"), programs/recorders/before.h) reads user stacks of sleeping
  // threads.
  bool asks_for_sleeping_stacks() const;
  // Adds such a stack: context switches of the thread, and addresses, leaf first.
  Result<> put_sleeping_stack(std::uint32_t thread, std::uint64_t switches,
                              std::span<const std::uint64_t> frames) const;
  // Runs the program at_begin, when events are enabled.
  Result<> begin() const;
  // Runs the programs of SEC("syscall"): once, at the end of a recording while events are enabled, before the
  // last reading of summaries.
  Result<> end() const;
  // Runs the iterators, which fill maps of summaries: once before each reading. ETIMEDOUT: one did not end in
  // time.
  Result<> gather(RunUntil until) const;
  bool has_iterators() const;
  bool has_summaries() const;

  // Events dropped by EventRate::most_a_second.
  std::uint64_t over_rate() const;

  // The declarations of tacho/event.h in its BTF, with problems.
  const Declarations& declared() const;

  // Warnings about output that is not recorded: bpf_printk(), iterators.
  std::vector<std::string> unsupported_output() const;

  // Loads the object and attaches its programs. Perf event arrays get a slot for each possible CPU. An error:
  // a required program, or all alternatives of a group, cannot be loaded or attached.
  Result<> load_and_attach();
  // Puts a bpf-output event's descriptor, opened on exactly that CPU, into the map's slot.
  Result<> connect(std::string_view map, int cpu, int event_fd);
  // Opens the ring buffer of a channel, which belongs to the object; after load_and_attach().
  Result<Ring> open_ring(const std::string& map) const;
  // Opens the map of a summary, or one of its stack maps; after load_and_attach().
  Result<MapReader> open_map(const std::string& map) const;
  // The object's only stack map; empty: none or several.
  std::string stack_map() const;
  // Events lost so far since a ring buffer with headers or a summary's map was full.
  std::uint64_t lost_by_ring(const std::string& map) const;
  // Calls that were nested deeper than the kernel can follow returns (programs/recorders/too_deep.h): in all,
  // and by function, most first.
  std::uint64_t too_deep() const;
  std::vector<std::pair<std::string, std::uint64_t>> too_deep_by_function() const;
  // Waits and calls whose end the kernel did not trace (programs/recorders/unseen_ends.h).
  std::uint64_t unseen_ends() const;
  // Names of the programs of SEC("perf_event"): each runs on samples of an event that the recorder opens. The
  // kernel allows one program for each event.
  std::vector<std::string> perf_event_programs() const;
  // Attaches such a program (Object::attach_to_event()). Does nothing if an alternative runs instead.
  Result<format::Fd> attach_to_perf_event(std::string_view program, int event_fd);

  // Valid after load_and_attach().
  std::vector<format::AttachedProgram> programs() const;
  // Ids of programs that can make perf events on their tracepoint miss samples (kernel_btf.h).
  std::vector<std::uint32_t> dropping_programs() const;
  // Recursion misses of all programs: runs that the kernel skipped, since the program was running on that
  // CPU.
  std::uint64_t recursion_misses() const;
  // The object's BTF; empty: none.
  std::vector<std::byte> btf() const;

 private:
  struct State;
  explicit UserObject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
