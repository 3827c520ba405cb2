// A user's BPF object, or an embedded recorder, before it is loaded: its channels, programs and settings.
//
//   auto object = UserObject::open("bigreads.bpf.c", options);
//   object->set_constant("min", "4096");
//   auto loaded = object->load();                   // alternatives tried in order
//   loaded->connect_channel("channel", cpu, fd);    // a bpf-output event of that CPU
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/attach/function_probes.h"
#include "bpf/loaded_object.h"
#include "bpf/object/btf_schema.h"
#include "bpf/object/channel.h"
#include "bpf/object/constant_value.h"
#include "bpf/object/object.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

struct ObjectOptions {
  Log log;  // for -v: chosen alternatives, rejected programs with reasons, libbpf's warnings
  std::function<bool()> stop = {};  // polled while a compiler runs; true ends it
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
  format::Bytes elf() const;        // lives as long as this
  const std::vector<Channel>& channels() const;
  // Ring buffers of kUnfinished (in-flight calls), and their events.
  std::vector<std::pair<std::string, std::string>> unfinished_channels() const;
  // The globals with HELP(text).
  std::vector<ObjectOption> constants() const;
  // The value of a `const volatile` global; empty: there is none.
  std::vector<std::byte> constant(std::string_view name) const;
  // Sections of its programs; preferred alternatives first.
  std::vector<Hooks> hooks() const;
  // Names of the programs of SEC("perf_event"): each runs on samples of an event that the recorder opens. The
  // kernel allows one program for each event.
  std::vector<std::string> perf_event_programs() const;
  // The declarations of tacho/event.h in its BTF, with problems.
  const Declarations& declared() const;
  // Warnings about output that is not recorded: bpf_printk(), iterators.
  std::vector<std::string> unsupported_output() const;
  // How its programs can use the unwinder, for stacks without frame pointers.
  WalkUse walk_use() const;
  // Whether its programs evaluate a condition of --filter: before an event's members are set (tacho_wants()),
  // or after (tacho_wants_this(), tacho_submit()).
  bool supports_filter() const;
  bool supports_filter_of(const Channel& channel) const;
  // Whether it has programs for functions that the caller has to choose.
  bool wants_functions() const;
  // The functions named in the sections of its programs, required ones first; empty: any function.
  std::vector<std::string> wanted_functions() const;

  // Settings.

  // Sets a `const volatile` global (constant_value.h).
  std::optional<ConstantFault> set_constant(std::string_view name, std::optional<std::string_view> value);
  // Sets a reserved `const volatile` global, if the object has one of that name and size.
  void set_own(const std::string& name, format::Bytes bytes);
  // Replaces the last field of payloads, if it is called `field`, by fields of 64 bits.
  void set_fields(std::string_view field, const std::vector<format::PayloadField>& instead);
  // Records only threads of this table (follower.h), which must outlive the object. False: the object does
  // not call tacho_wants() (tacho/emit.h) and emits events of all threads.
  bool set_threads(int table_fd);
  // Sets rate limits. False: as for set_threads().
  bool set_rate(const EventRate& rate);
  // Sets the condition of all programs, or of one channel, which may compare payload members.
  void set_filter(std::span<const FilterStep> steps);
  void set_filter(const Channel& channel, std::span<const FilterStep> steps);
  void set_functions(FunctionTargets targets);

  // Loads it with these settings. `walker_maps`: of a StackWalker, which must stay open meanwhile: the
  // unwinder is linked into its programs; empty: it is not.
  Result<LoadedObject> load(MapsByName walker_maps = {}) const;

 private:
  struct State;
  explicit UserObject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
