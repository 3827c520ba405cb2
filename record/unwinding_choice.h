// Which events' stacks are walked in the kernel by unwind information (--call-graph eh, and -g where it can
// be).
#pragma once

#include <cstdint>
#include <string>

#include "format/event_attr.h"
#include "format/result.h"
#include "record/events/call_graph.h"
#include "record/events/event_request.h"

namespace tacho::record {

struct UnwindingChoice {
  std::uint16_t frames = 0;             // of a walk, at most; 0: the stacks are not unwound
  bool may_use_frame_pointers = false;  // when the kernel refuses: nobody asked for it by name
  std::string refusal;                  // why frame pointers are taken instead; empty: they are not
};

// `attr`: of the event, as it will be opened. An error: it was asked for by name, and cannot be.
Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread);

}  // namespace tacho::record
