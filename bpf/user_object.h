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
  // Lines for -v: the chosen alternatives, programs left out and why, libbpf's warnings.
  std::function<void(std::string_view)> log;
  // Asked while a compiler runs: true ends it.
  std::function<bool()> stop = {};
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

// Programs that are loaded all or none, by their sections: "tp_btf/sys_enter".
struct Hooks {
  std::vector<std::string> sections;
  std::string group;  // of alternatives; empty: all of them are wanted
  bool optional = false;
};

class UserObject {
 public:
  // `path`: an ELF object, or C source when it ends in .c (compiled first, see compile.h). Refused when
  // others than root and the user could change it: it goes into the kernel.
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
  const std::vector<Channel>& channels() const;
  // Maps of kUnfinished, and their events.
  std::vector<std::pair<std::string, std::string>> unfinished_channels() const;
  // What set_constant() can set, of those with HELP(text).
  std::vector<ObjectOption> constants() const;
  // Sections of its programs; of alternatives the preferred ones first.
  std::vector<Hooks> hooks() const;

  // Sets a `const volatile` global before load_and_attach() (constant_value.h). The fault says what there is.
  std::optional<ConstantFault> set_constant(std::string_view name, std::optional<std::string_view> value);

  // Before load_and_attach(): only threads of this table are wanted (follower.h), which must outlive the
  // object. False: the object does not ask tacho_wants() (tacho/emit.h), and emits events of all threads.
  bool follow(int table_fd);
  // Before load_and_attach(): sets rate limits. False as for follow().
  bool limit(const EventRate& rate);
  // Before load_and_attach(): the condition of --filter. Whether its programs ask about one: before their
  // events are filled (tacho_wants()), and of each event once it is (tacho_wants_this(), tacho_submit()).
  bool asks_filter() const;
  bool asks_filter_of(const Channel& channel) const;
  // Sets the condition of all programs, or of one channel, whose steps may compare members of the payload.
  void filter(std::span<const FilterStep> steps);
  void filter(const Channel& channel, std::span<const FilterStep> steps);

  // Whether it has programs for functions that the caller has to find, and before load_and_attach(): which.
  bool wants_functions() const;
  // Function names in the sections of its programs, required ones first; none: the programs take any
  // function.
  std::vector<std::string> wanted_functions() const;
  void follow_functions(FunctionTargets targets);
  // After load_and_attach(): functions that the kernel cannot probe, and left out.
  std::size_t unprobed_functions() const;
  // Before load_and_attach(): a `const volatile` global of tacho's own, whole; nothing when the object has
  // none of that name and size. And fields of 64 bits in the place of `field` of its payloads, which is the
  // last.
  void set_own(const std::string& name, format::Bytes bytes);
  void set_fields(std::string_view field, const std::vector<format::PayloadField>& instead);
  // The value of a `const volatile` global as it was set, or as the object has it; empty when there is none.
  std::vector<std::byte> constant(std::string_view name) const;

  // What its programs leave to the unwinder (walk_link.h), with which they find stacks without frame
  // pointers.
  WalkUse walk_use() const;
  // Before load_and_attach(): links the unwinder into its programs, with these maps of a StackWalker by name,
  // which must stay open until then. Without maps it is not linked. Fails where it cannot be linked, and then
  // it is not.
  Result<> walk_stacks(MapsByName maps);

  // After load_and_attach(): whether its events are wanted from now on; at first they are not. Programs that
  // ask (tacho/emit.h) count nothing, lose nothing and walk no stack while they are not.
  void want_events(bool wanted);

  // Whether a program at_begin (section "iter/task") is loaded that wants the user stacks of threads that are
  // off the CPUs; such a stack: how often the thread had left a CPU, and addresses, leaf first; and runs such
  // programs: when its events are switched on (programs/recorders/before.h).
  bool asks_for_sleeping_stacks() const;
  Result<> put_sleeping_stack(std::uint32_t thread, std::uint64_t switches,
                              std::span<const std::uint64_t> frames) const;
  Result<> begin() const;
  // Runs the programs of section "syscall": once, at the end of a recording while its events are still on,
  // before the summaries are read for the last time.
  Result<> end() const;
  // Runs the iterators: once before each reading of the summaries, whose maps they fill. ETIMEDOUT: they had
  // not come to their end then.
  Result<> gather(RunUntil until) const;
  bool has_iterators() const;
  bool has_summaries() const;

  // Events left out because of EventRate::most_a_second.
  std::uint64_t over_rate() const;

  // What its BTF says with tacho/event.h, and what of that cannot be used.
  const Declarations& declared() const;

  // A line for each kind of output of its programs that is not recorded: bpf_printk(), iterators.
  std::vector<std::string> unsupported_output() const;

  // Loads the object and attaches every program that can be. Perf event arrays are sized to the possible CPUs
  // before. Fails when a program that is neither optional nor an alternative cannot be loaded or attached, or
  // when no program of a group of alternatives can.
  Result<> load_and_attach();
  // Puts a bpf-output event's descriptor, opened on exactly that CPU, into the map's slot.
  Result<> connect(std::string_view map, int cpu, int event_fd);
  // A ring buffer among the channels, which stays the object's. After load_and_attach().
  Result<Ring> open_ring(const std::string& map) const;
  // The map of a summary among them, or a map of stacks that one names. After load_and_attach().
  Result<MapReader> open_map(const std::string& map) const;
  // The object's only map of stacks; empty when it has none or several.
  std::string stack_map() const;
  // Events that found no room in a ring buffer with heads or in the map of a summary, so far.
  std::uint64_t lost_by_ring(const std::string& map) const;
  // Calls whose returns the kernel does not watch, as they are nested too deep
  // (programs/recorders/too_deep.h): in all, and by function, the most often lost first.
  std::uint64_t too_deep() const;
  std::vector<std::pair<std::string, std::uint64_t>> too_deep_by_function() const;
  // Names of the programs of section "perf_event": each runs on samples of an event that the recorder opens
  // on each CPU. The kernel takes one program for each event.
  std::vector<std::string> perf_event_programs() const;
  // Gives what holds it there (Object::attach_to_event()). Does nothing when that program was left out of the
  // object (an alternative to it runs).
  Result<format::Fd> attach_to_perf_event(std::string_view program, int event_fd);

  // Valid after load_and_attach().
  std::vector<format::AttachedProgram> programs() const;
  // Ids of programs that are on a tracepoint and can make its perf events lose samples
  // (kernel_btf.h).
  std::vector<std::uint32_t> dropping_programs() const;
  // Runs that the kernel skipped because the program was already running on that CPU, all programs together.
  std::uint64_t recursion_misses() const;
  // The object's BTF as in the file; empty when it has none.
  std::vector<std::byte> btf() const;

 private:
  struct State;
  explicit UserObject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::vector<std::string> called_;  // the functions that are followed
};

}  // namespace tacho::bpf
