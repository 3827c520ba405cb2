#include "record/unwinding_choice.h"

#include <algorithm>
#include <string_view>

#include "format/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// The program sees every hit of a tracepoint or probe, and walks before the kernel chooses.
bool has_walks_for_nothing(const EventRequest& request, const format::EventAttr& attr) {
  const bool is_tracepoint = attr.type == abi::kTracepoint;
  const bool is_chosen_later = attr.has(abi::kFreq) || attr.sample_period > 1;
  return (is_tracepoint && !request.filter.empty()) ||
         ((is_tracepoint || request.kind == EventKind::Probe) && is_chosen_later);
}

std::string_view refusal_of(const EventRequest& request, const format::EventAttr& attr, bool is_asked_for,
                            bool per_thread) {
  if (per_thread) return "unwound stacks need a ring for each CPU, and --per-thread has none";
  if (!is_asked_for && has_walks_for_nothing(request, attr))
    return "not every hit becomes a sample, and each would be unwound (--call-graph eh does it all the same)";
  return {};
}

}  // namespace

Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread) {
  const bool is_asked_for = stacks.method == CallGraph::Unwound;
  UnwindingChoice choice;
  if (!is_asked_for && stacks.method != CallGraph::Best) return choice;
  if (attr.has(abi::kExcludeCallchainUser)) return choice;  // there is no user's side
  if (is_asked_for && per_thread)
    return use_error("--call-graph eh: its stacks need a ring for each CPU; leave --per-thread out");
  choice.may_use_frame_pointers = !is_asked_for;
  choice.refusal = refusal_of(request, attr, is_asked_for, per_thread);
  if (!choice.refusal.empty()) return choice;
  const std::uint16_t frames = stacks.max_frames == 0 ? kDefaultUnwoundFrames : stacks.max_frames;
  choice.frames = std::min(frames, kMostUnwoundFrames);
  return choice;
}

}  // namespace tacho::record
