// perf_event_attr of one event, from its -e, the options and the host; and how its user stacks are unwound.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "record/events/event_request.h"
#include "record/events/event_spec.h"
#include "record/events/sample_fields.h"
#include "record/host/host.h"
#include "record/options/sampling_options.h"

namespace tacho::record {

// Stack options from the terms of the event, or else from the options.
StackOptions stacks_of(const EventRequest& request, const SamplingOptions& options);

// What every event of a capture has, so that the record loop and every reader find id and time at one place.
format::EventAttr common_attr(const SamplingOptions& options);

// The target, as far as it decides how an event is opened.
struct Following {
  bool children = true;  // of the watched threads, if the event or the next line says so
  bool inherits = true;  // what events do that do not say it
  bool at_exec = false;  // taking begins with the exec of the command
};

// Messages for the user where less was possible than requested go into `notes`, each once.
Result<format::EventAttr> sampling_attr(const EventRequest& request, const SamplingOptions& options,
                                        const Host& host, Following following,
                                        std::vector<std::string>& notes);

// Of the event that carries mappings, names and ends of processes.
format::EventAttr sideband_attr(const SamplingOptions& options, Following following);

// Has the kernel copy the user's registers and so many bytes of the stack, in place of the user's part of
// the call chain: the fields that perf asks for, so that its unwinder and tacho's have what they need.
void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes);

// Which events' stacks are walked in the kernel by unwind information (--call-graph ehframe, and -g where it
// can be).

struct UnwindingChoice {
  std::uint16_t frames = 0;             // of a walk, at most; 0: the stacks are not unwound
  bool may_use_frame_pointers = false;  // when the kernel refuses: it was not asked for by name
  std::string refusal;                  // why frame pointers are taken instead; empty: they are not
};

// `attr`: of the event, as it will be opened. An error: it was asked for by name, and is not possible.
Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread);

}  // namespace tacho::record
