#include "record/plan/stack_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"
#include "record/events/sample_fields.h"

namespace tacho::record {

namespace abi = format::abi;

namespace {

// Keeps the header's feature section small, however long the names of events are.
constexpr std::size_t kMostFacts = 64, kLongestEventName = 128;

std::string stacks_in_words(const PlannedEvent& event) {
  if (event.unwound_frames != 0) return "unwound in the kernel (ehframe)";
  if (event.copies_stacks)
    return "copied, to be unwound from the copies, since " + event.unwind_fallback_reason;
  return "frame pointers, since " + event.unwind_fallback_reason;
}

}  // namespace

void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes) {
  attr.sample_type |= abi::kSampleRegsUser | abi::kSampleStackUser | abi::kSampleAddr | abi::kSampleDataSrc;
  attr.flags |= abi::kExcludeCallchainUser;
  attr.sample_stack_user = bytes;
  if (attr.sample_regs_user == 0) attr.sample_regs_user = all_registers();
}

void add_once(std::vector<std::string>& notes, std::string note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

bool may_use_frame_pointers(const Plan& plan) {
  return std::ranges::all_of(plan.events, [](const PlannedEvent& event) {
    return event.unwound_frames == 0 || event.may_use_frame_pointers;
  });
}

Fallback do_without_unwinding(PlannedEvent& event, std::vector<std::string>& notes) {
  const bool can_copy = event.may_use_frame_pointers && !event.attr.is_bpf_output() &&
                        !event.attr.has(abi::kExcludeCallchainUser) && all_registers() != 0;
  if (!can_copy) {
    add_once(notes, fmt::format("{}: stacks of '{}' are walked by frame pointers, since {}",
                                event.may_use_frame_pointers ? "-g" : "--call-graph ehframe", event.name,
                                event.unwind_fallback_reason));
    return Fallback::FramePointers;
  }
  copy_user_stacks(event.attr, kDefaultStackBytes);
  event.copies_stacks = true;
  add_once(notes, "-g: stacks are copied, 8 KB each, and unwound from the copies, since " +
                      event.unwind_fallback_reason);
  return Fallback::Copies;
}

void use_frame_pointers(PlannedEvent& event, const std::string& why, std::vector<std::string>& notes) {
  const std::uint16_t frames = std::exchange(event.unwound_frames, 0);
  if (frames == 0) return;
  event.unwind_fallback_reason = why.substr(0, why.find('\n'));
  event.unwinds_in_program = false;
  if (do_without_unwinding(event, notes) == Fallback::Copies) return;
  if (frames > kKernelFrames)
    event.attr.sample_max_stack = frames;  // more than the kernel's limit: from --max-stack
}

void choose_stacks_of_objects(Plan& plan, std::span<const ObjectFacts> objects) {
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    PlannedEvent& event = plan.events[i];
    if (event.unwound_frames == 0 || !event.attr.is_bpf_output()) continue;
    if (std::ranges::find(plan.argument_probes, i, &ArgumentProbe::event) != plan.argument_probes.end())
      continue;
    if (!event.attr.samples(abi::kSampleCallchain)) {
      event.unwound_frames = 0;  // of a ring buffer without stacks
      continue;
    }
    bool is_fed = false, is_walked = true, feeds_recorder = false;
    for (const Connection& connection : plan.connections) {
      if (connection.event != i) continue;
      is_fed = true;
      feeds_recorder |= objects[connection.object].is_recorder();
      const bool is_ring = connection.kind != bpf::ChannelKind::PerfEventArray;
      const bpf::WalkUse& use = objects[connection.object].walk_use;
      event.unwinds_in_program = is_ring;
      is_walked = is_walked && (is_ring ? use.in_payloads : use.in_front_of_events);
    }
    if (!is_fed) use_frame_pointers(event, "a program without tacho/event.h writes its samples", plan.notes);
    if (is_fed && !is_walked)
      use_frame_pointers(event,
                         feeds_recorder ? "its recorder takes the kernel's stacks"
                         : event.unwinds_in_program
                             ? "its BPF program takes them itself, without tacho_user_stack() of tacho/emit.h"
                             : "its BPF program was compiled without tacho/event.h, or an older one",
                         plan.notes);
  }
}

format::StringPairs facts_of_choice(const Plan& plan) {
  format::StringPairs facts;
  for (const PlannedEvent& event : plan.events) {
    const bool is_wanted = event.unwound_frames != 0 || !event.unwind_fallback_reason.empty();
    if (!is_wanted || !event.attr.samples(abi::kSampleCallchain) || facts.size() == kMostFacts) continue;
    facts.emplace_back("event " + event.name.substr(0, kLongestEventName), stacks_in_words(event));
  }
  const auto is_other = [&](const auto& fact) { return fact.second != facts.front().second; };
  if (facts.size() > 1 && std::ranges::none_of(facts, is_other)) {
    facts.resize(1);
    facts.front().first = "every event";
  }
  return facts;
}

}  // namespace tacho::record
