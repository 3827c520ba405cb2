// One event as -e names it, before it is resolved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/object/probe_program.h"
#include "format/records/perf_abi.h"
#include "record/events/sample_fields.h"

namespace tacho::record {

enum class ProbeKind : std::uint8_t {
  User,    // a function of a program or library
  Marker,  // a USDT marker in one
  Kernel,  // a function of the kernel
};

// "map:channel.event=evt": outputs of the map `channel` are samples of the event `evt`.
struct MapBinding {
  std::string map, event;
  bool operator==(const MapBinding&) const = default;
};

// "NAME=VALUE" for a `const volatile` global of an object.
struct ConstantSetting {
  std::string name;
  std::optional<std::string> value;       // nothing: the name alone
  std::size_t name_at = 0, value_at = 0;  // letters into EventRequest::text
  bool operator==(const ConstantSetting&) const = default;
};

// A field that an expression about an event needs: argdist's value='bytes / 64'.
struct NeededField {
  std::string name, option;  // option: "if", "value" or "key"
  std::string text;          // the text of -e
  std::size_t at = 0;        // of the option's value in `text`
  bool operator==(const NeededField&) const = default;
};

// "NAME=SOURCE:TYPE" in the parentheses of a probe (probe_arguments.h).
struct ArgumentRequest {
  std::string name, source;  // equal where no name was given
  std::string type;          // empty: the argument's own
  bool operator==(const ArgumentRequest&) const = default;
};

// The event for the kernel: an alternative for each kind.

// Counters, clocks, software events, PMUs, breakpoints: only type and config.
struct CounterRequest {};

// resolve_tracepoints() sets `config`.
struct TracepointRequest {
  std::string system, name;        // both may be globs
  std::vector<NeededField> needs;  // the fields that a recorder needs
};

// find_probes() sets type and config.
struct ProbeRequest {
  ProbeKind kind = ProbeKind::User;
  std::string path;                // of the file; empty in the kernel
  std::string provider, function;  // function: also a marker's name; empty: `offset` is in the file
  std::uint64_t offset = 0;        // bytes from the function's start
  bool at_return = false;
};

// BPF programs, of a file or a recorder.
struct ObjectRequest {
  std::string path;                  // of a recorder: its name
  std::vector<MapBinding> bindings;  // empty: an event for each of its channels
  std::vector<ConstantSetting> constants;
};

struct EventRequest {
  std::variant<CounterRequest, TracepointRequest, ProbeRequest, ObjectRequest> what;
  // Null: the event is of another kind.
  const TracepointRequest* tracepoint() const { return std::get_if<TracepointRequest>(&what); }
  TracepointRequest* tracepoint() { return std::get_if<TracepointRequest>(&what); }
  const ProbeRequest* probe() const { return std::get_if<ProbeRequest>(&what); }
  ProbeRequest* probe() { return std::get_if<ProbeRequest>(&what); }
  const ObjectRequest* object() const { return std::get_if<ObjectRequest>(&what); }
  ObjectRequest* object() { return std::get_if<ObjectRequest>(&what); }
  bool is_counter() const { return std::holds_alternative<CounterRequest>(what); }
  // Settings of an object; empty for others.
  std::span<const ConstantSetting> constants() const {
    return object() != nullptr ? std::span<const ConstantSetting>(object()->constants)
                               : std::span<const ConstantSetting>();
  }
  // The setting of that name; null: it is not set.
  const ConstantSetting* setting(std::string_view of) const {
    const auto found = std::ranges::find(constants(), of, &ConstantSetting::name);
    return found == constants().end() ? nullptr : &*found;
  }
  // Its value; empty: it has none, or is not set.
  std::string value_of(std::string_view of) const {
    const ConstantSetting* const one = setting(of);
    return one != nullptr ? one->value.value_or("") : std::string();
  }

  std::string text;  // as written, for messages
  std::string name;  // in the capture; empty for an object

  std::uint32_t type = format::abi::kSoftware;         // of perf_event_attr, as are all of these
  std::uint64_t config = 0, config1 = 0, config2 = 0;  // of a breakpoint: address and length
  std::uint32_t bp_type = 0;
  std::uint64_t flags =
      format::abi::kExcludeGuest;  // abi::AttrFlag: where it counts, how exactly, how exclusively

  std::string recorder;        // the recorder's name (recorders.h); empty: none
  bool asks_for_help = false;  // "/help/"
  // Of functions whose returns are followed: an error, not a warning, where exceptions are thrown.
  bool refuses_exceptions = false;
  // For a probe or tracepoint of a recorder: the recorder's name, and its page's view.
  std::string catalogue_name, view;

  // Of a probe: the values in its samples. Of a tracepoint: the fields by which hits are counted.
  std::vector<ArgumentRequest> arguments;
  // Their locations, found by find_probes() (probes) and resolve_tracepoints() (tracepoints with `sum`).
  std::vector<bpf::ProbeArgument> placed_arguments;
  std::optional<bpf::ProbeSum> sum;  // hits are counted in the kernel (argdist)
  std::string no_sum;                // why argdist cannot count them in the kernel
  std::string probe_target;          // for the kernel: the file's path, or the kernel function

  std::optional<std::uint64_t> period, frequency;  // events; Hz
  // The event's own terms, which override the options.
  std::optional<CallGraph> call_graph;
  std::optional<std::uint32_t> stack_bytes;  // of a stack copy (CallGraph::Dwarf)
  std::optional<std::uint16_t> max_frames;
  std::optional<std::uint64_t> branches;  // perf_event_attr.branch_sample_type
  std::optional<bool> inherit;            // whether child tasks are followed
  bool most_precise = false;              // modifier P: the highest possible precise_ip
  bool reads_group = false;               // modifier S: its samples have the counts of its group
  bool names_guests = false;              // it has the modifier G or H
  bool name_has_modifiers = false;        // "cycles:pp"; not a name that a term gave

  std::size_t group = 0;   // number of its group within its -e, from 1; 0: none
  std::string group_name;  // "g" of "g{a,b}"
  std::size_t option = 0;  // the number of its -e, from 1
  // --filter and --exclude-perf: in the kernel's language for a tracepoint without `sum`, else in that of
  // compile_condition() (condition.h).
  std::string filter;
  std::string filter_place = "--filter";  // the start of messages about it
  bpf::FilterSteps condition;             // the same, compiled, of a Counter or Probe
  std::string filter_fields;              // of a Tracepoint with a filter: its fields, "prev_comm, prev_pid"
};

}  // namespace tacho::record
