#include "record/stacks/stack_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "format/perf_abi.h"

namespace tacho::record {

namespace abi = format::abi;

namespace {

constexpr std::size_t kWakeupPart = 4;  // of a ring, until somebody looks
// A header's section stays small, whatever events are called.
constexpr std::size_t kMostFacts = 64, kLongestName = 128;

std::string described(const PlannedEvent& event) {
  if (event.unwound_frames != 0) return "unwound in the kernel (eh)";
  if (event.copies_stacks) return "copied, to be unwound from the copies, since " + event.no_unwinding;
  return "frame pointers, since " + event.no_unwinding;
}

}  // namespace

bool may_use_frame_pointers(const Plan& plan) {
  return std::ranges::all_of(plan.events, [](const PlannedEvent& event) {
    return event.unwound_frames == 0 || event.may_use_frame_pointers;
  });
}

void use_frame_pointers(Plan& plan, PlannedEvent& event, const std::string& why) {
  const std::uint16_t frames = std::exchange(event.unwound_frames, 0);
  if (frames == 0) return;
  event.no_unwinding = why.substr(0, why.find('\n'));
  event.is_walked_in_payload = false;
  if (do_without_unwinding(event, plan.notes) == Without::Copies) return;
  if (frames > kKernelFrames) event.attr.sample_max_stack = frames;  // they were asked for
}

void use_frame_pointers(Plan& plan, const Host& host, const std::string& why) {
  for (PlannedEvent& event : plan.events) use_frame_pointers(plan, event, why);
  relax_sideband(plan, host);
}

void relax_sideband(Plan& plan, const Host& host) {
  plan.events.back().attr.wakeup =
      static_cast<std::uint32_t>(plan.sideband_pages * host.page_size / kWakeupPart);
}

void settle_stacks_of_objects(Plan& plan, std::span<const ObjectFacts> objects) {
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    PlannedEvent& event = plan.events[i];
    if (event.unwound_frames == 0 || !event.attr.is_bpf_output()) continue;
    if (std::ranges::find(plan.argument_probes, i, &ArgumentProbe::event) != plan.argument_probes.end())
      continue;
    if (!event.attr.samples(abi::kSampleCallchain)) {
      event.unwound_frames = 0;  // of a ring buffer without stacks
      continue;
    }
    bool is_fed = false, is_walked = true;
    for (const Connection& connection : plan.connections) {
      if (connection.event != i) continue;
      is_fed = true;
      const bool is_ring = connection.kind != bpf::ChannelKind::PerfEventArray;
      const bpf::WalkUse& use = objects[connection.object].walk_use;
      event.is_walked_in_payload = is_ring;
      is_walked = is_walked && (is_ring ? use.in_payloads : use.in_front_of_events);
    }
    if (!is_fed) use_frame_pointers(plan, event, "a program without tacho/event.h writes its samples");
    if (is_fed && !is_walked)
      use_frame_pointers(plan, event, "its BPF program was compiled without tacho/event.h, or an older one");
  }
}

format::StringPairs facts_of_choice(const Plan& plan) {
  format::StringPairs facts;
  for (const PlannedEvent& event : plan.events) {
    const bool is_wanted = event.unwound_frames != 0 || !event.no_unwinding.empty();
    if (!is_wanted || !event.attr.samples(abi::kSampleCallchain) || facts.size() == kMostFacts) continue;
    facts.emplace_back("event " + event.name.substr(0, kLongestName), described(event));
  }
  const auto is_other = [&](const auto& fact) { return fact.second != facts.front().second; };
  if (facts.size() > 1 && std::ranges::none_of(facts, is_other)) {
    facts.resize(1);
    facts.front().first = "every event";
  }
  return facts;
}

}  // namespace tacho::record
