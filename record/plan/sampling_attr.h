// perf_event_attr of one event: what its spec, the options and the host say together. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/event_attr.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/events/event_spec.h"
#include "record/events/sample_fields.h"
#include "record/host/host.h"
#include "record/options/sampling_options.h"

namespace tacho::record {

// What the terms of the event say of its stacks, or else the options.
StackOptions stacks_of(const EventRequest& request, const SamplingOptions& options);

// What every event of a capture has, so that the pump and every reader find id and time at one place.
format::EventAttr common_attr(const SamplingOptions& options);

// What is watched, as far as it decides how an event is opened.
struct Following {
  bool children = true;  // of the watched threads, if the event or the next line says so
  bool inherits = true;  // what events do that do not say it
  bool at_exec = false;  // taking begins with the exec of the command
};

// Lines for the user where less was possible than asked for go into `notes`, each once.
Result<format::EventAttr> sampling_attr(const EventRequest& request, const SamplingOptions& options,
                                        const Host& host, Following following,
                                        std::vector<std::string>& notes);

// Of the event that carries mappings, names and ends of processes.
format::EventAttr sideband_attr(const SamplingOptions& options, Following following);

// Has the kernel copy the user's registers and so many bytes of the stack, in place of the user's side of the
// call chain: the same fields that perf asks for, so that its unwinder and ours have what they need.
void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes);

// Which events' stacks are walked in the kernel by unwind information (--call-graph ehframe, and -g where it
// can be).

struct UnwindingChoice {
  std::uint16_t frames = 0;             // of a walk, at most; 0: the stacks are not unwound
  bool may_use_frame_pointers = false;  // when the kernel refuses: nobody asked for it by name
  std::string refusal;                  // why frame pointers are taken instead; empty: they are not
};

// `attr`: of the event, as it will be opened. An error: it was asked for by name, and cannot be.
Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread);

}  // namespace tacho::record
