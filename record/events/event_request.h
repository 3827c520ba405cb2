// One event as -e names it, before the kernel was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
  std::string type;          // empty: as it is found
  bool operator==(const ArgumentRequest&) const = default;
};

// The event for the kernel: an alternative for each kind.

// Counters, clocks, software events, PMUs, breakpoints: type and config say all.
struct CounterRequest {};

// `config` is found by resolve_tracepoints().
struct TracepointRequest {
  std::string system, name;        // both may be globs
  std::vector<NeededField> needs;  // of a recorder: the fields it needs
};

// Type and config are found by find_probes().
struct ProbeRequest {
  ProbeKind kind = ProbeKind::User;
  std::string path;                // of the file; empty in the kernel
  std::string provider, function;  // function: also a marker's name; empty: `offset` is one in the file
  std::uint64_t offset = 0;        // bytes from the function's begin
  bool at_return = false;
};

// BPF programs, from a file or tacho's own.
struct ObjectRequest {
  std::string path;                  // of a recorder its name
  std::vector<MapBinding> bindings;  // empty: an event for each of its channels
  std::vector<ConstantSetting> constants;
};

struct EventRequest {
  std::variant<CounterRequest, TracepointRequest, ProbeRequest, ObjectRequest> what;
  // Null where the event is of another kind.
  const TracepointRequest* tracepoint() const { return std::get_if<TracepointRequest>(&what); }
  TracepointRequest* tracepoint() { return std::get_if<TracepointRequest>(&what); }
  const ProbeRequest* probe() const { return std::get_if<ProbeRequest>(&what); }
  ProbeRequest* probe() { return std::get_if<ProbeRequest>(&what); }
  const ObjectRequest* object() const { return std::get_if<ObjectRequest>(&what); }
  ObjectRequest* object() { return std::get_if<ObjectRequest>(&what); }
  bool is_counter() const { return std::holds_alternative<CounterRequest>(what); }
  // Settings of an object; of others none.
  std::span<const ConstantSetting> constants() const {
    return object() != nullptr ? std::span<const ConstantSetting>(object()->constants)
                               : std::span<const ConstantSetting>();
  }

  std::string text;  // as written, for messages
  std::string name;  // what the capture calls it; empty for an object

  std::uint32_t type = format::abi::kSoftware;         // of perf_event_attr, as are all of these
  std::uint64_t config = 0, config1 = 0, config2 = 0;  // of a breakpoint: address and length
  std::uint32_t bp_type = 0;
  std::uint64_t flags =
      format::abi::kExcludeGuest;  // abi::AttrFlag: where it counts, how exactly, how exclusively

  std::string recorder;        // tacho's own that it is (recorders.h); empty: none
  bool asks_for_help = false;  // "/help/"
  // For a probe or tracepoint of a recorder: the recorder's name, and its page's view.
  std::string catalogue_name, view;

  // Of a probe: the values in its samples. Of a tracepoint: the fields by which hits are counted.
  std::vector<ArgumentRequest> arguments;
  // The same, found by find_probes(); of a Tracepoint with `sum`: its fields.
  std::vector<bpf::ProbeArgument> placed_arguments;
  std::optional<bpf::ProbeSum> sum;  // hits are counted in the kernel (argdist), of a Tracepoint too
  std::string no_sum;                // why argdist's are not
  std::string probe_target;          // for the kernel: the file's path, or the kernel function

  std::optional<std::uint64_t> period, frequency;  // events; Hz
  // The event's own terms, which override the options; stack_bytes: of the stack, with CallGraph::Dwarf.
  std::optional<CallGraph> call_graph;
  std::optional<std::uint32_t> stack_bytes;
  std::optional<std::uint16_t> max_frames;
  std::optional<std::uint64_t> branches;  // perf_event_attr.branch_sample_type
  std::optional<bool> inherit;            // whether what a thread starts is followed
  bool most_precise = false;              // as exact as the machine can
  bool reads_group = false;               // its samples bring the counts of its group
  bool names_guests = false;              // a modifier said whether guests or the host count

  std::size_t group = 0;   // events of one group have one number within their -e, from 1; 0: none
  std::string group_name;  // "g" of "g{a,b}"
  std::size_t option = 0;  // the number of its -e, from 1
  // From --filter and --exclude-perf: for a tracepoint without `sum` in the kernel's language, for other
  // events in that of compile_condition() (condition.h).
  std::string filter;
  std::string filter_place = "--filter";  // what messages about it begin with
  bpf::FilterSteps condition;             // the same of a Counter or Probe, compiled
  std::string filter_fields;  // of a Tracepoint with a filter: what that may ask for, "prev_comm, prev_pid"
};

}  // namespace tacho::record
