// One event as -e names it, before the kernel was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/object/probe_program.h"
#include "format/records/perf_abi.h"
#include "record/events/sample_fields.h"

namespace tacho::record {

enum class EventKind : std::uint8_t {
  Counter,     // type and config say all: counters, clocks, software events, PMUs, breakpoints
  Tracepoint,  // config is found by find_tracepoints()
  Probe,       // type and config are found by find_probes()
  BpfObject,
};

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
  std::string name, place;  // place: "-e TEXT: column 12: value"
  bool operator==(const NeededField&) const = default;
};

// "NAME=SOURCE:TYPE" in the parentheses of a probe (probe_arguments.h).
struct ArgumentRequest {
  std::string name, source;  // equal where no name was given
  std::string type;          // empty: as it is found
  bool operator==(const ArgumentRequest&) const = default;
};

struct EventRequest {
  EventKind kind = EventKind::Counter;
  std::string text;  // as written, for messages
  std::string name;  // what the capture calls it; empty for an object

  std::uint32_t type = format::abi::kSoftware;         // of perf_event_attr, as are all of these
  std::uint64_t config = 0, config1 = 0, config2 = 0;  // of a breakpoint: address and length
  std::uint32_t bp_type = 0;
  std::uint64_t flags =
      format::abi::kExcludeGuest;  // abi::AttrFlag: where it counts, how exactly, how exclusively

  std::string system, tracepoint;  // Tracepoint; both may be globs
  std::string path;                // BpfObject; of a Probe outside of the kernel the file
  std::string recorder;  // BpfObject that tacho carries: its row (recorders.h); `path` is that name, too
  std::string catalogue_name, view;        // of a probe that a recorder stands for: that one's name, its view
  std::vector<NeededField> needs;          // of a Tracepoint that a recorder stands for
  bool asks_for_help = false;              // BpfObject: "/help/"
  std::vector<MapBinding> bindings;        // BpfObject; empty: an event for each of its channels
  std::vector<ConstantSetting> constants;  // BpfObject

  ProbeKind probe = ProbeKind::User;  // Probe, as are the next five
  std::string provider, function;     // function: also a marker's name; empty: `offset` is one in the file
  std::uint64_t offset = 0;           // bytes from the function's begin
  bool at_return = false;
  std::vector<ArgumentRequest> arguments;  // what its samples are to hold
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
  std::size_t option = 0;  // which -e it stands in, counted from 1
  // Of --filter and --exclude-perf: of a Tracepoint without `sum` as the kernel understands it, of others as
  // compile_condition() does (condition.h).
  std::string filter;
  std::string filter_place = "--filter";  // what messages about it begin with
  bpf::FilterSteps condition;             // the same of a Counter or Probe, compiled
  std::string filter_fields;  // of a Tracepoint with a filter: what that may ask for, "prev_comm, prev_pid"
};

}  // namespace tacho::record
