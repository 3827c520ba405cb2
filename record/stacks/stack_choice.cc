#include "record/stacks/stack_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace abi = format::abi;

namespace {

constexpr std::size_t kWakeupPart = 4;  // fraction of a ring that wakes the recorder
// Keeps the header's feature section small, however long the names of events are.
constexpr std::size_t kMostFacts = 64, kLongestProgramName = 128;

std::string described(const PlannedEvent& event) {
  if (event.unwound_frames != 0) return "unwound in the kernel (ehframe)";
  if (event.copies_stacks)
    return "copied, to be unwound from the copies, since " + event.unwind_fallback_reason;
  return "frame pointers, since " + event.unwind_fallback_reason;
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
  event.unwind_fallback_reason = why.substr(0, why.find('\n'));
  event.unwinds_in_program = false;
  if (do_without_unwinding(event, plan.notes) == Fallback::Copies) return;
  if (frames > kKernelFrames) event.attr.sample_max_stack = frames;  // the user set it
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
    if (!is_fed) use_frame_pointers(plan, event, "a program without tacho/event.h writes its samples");
    if (is_fed && !is_walked)
      use_frame_pointers(plan, event,
                         feeds_recorder ? "its recorder takes the kernel's stacks"
                         : event.unwinds_in_program
                             ? "its BPF program takes them itself, without tacho_user_stack() of tacho/emit.h"
                             : "its BPF program was compiled without tacho/event.h, or an older one");
  }
}

format::StringPairs facts_of_choice(const Plan& plan) {
  format::StringPairs facts;
  for (const PlannedEvent& event : plan.events) {
    const bool is_wanted = event.unwound_frames != 0 || !event.unwind_fallback_reason.empty();
    if (!is_wanted || !event.attr.samples(abi::kSampleCallchain) || facts.size() == kMostFacts) continue;
    facts.emplace_back("event " + event.name.substr(0, kLongestProgramName), described(event));
  }
  const auto is_other = [&](const auto& fact) { return fact.second != facts.front().second; };
  if (facts.size() > 1 && std::ranges::none_of(facts, is_other)) {
    facts.resize(1);
    facts.front().first = "every event";
  }
  return facts;
}

namespace {

bool is_unwound(const Plan& plan, std::size_t object) {
  return std::ranges::any_of(plan.connections, [&](const Connection& each) {
    return each.object == object && plan.events[each.event].unwound_frames != 0;
  });
}

// For a multi-line error that ends with the verifier's log: its first line, and the verifier's last line
// before its statistics.
std::string in_a_line(std::string_view text) {
  const std::string head(text.substr(0, std::min(text.find('\n'), text.rfind("; its last lines"))));
  std::string_view last;
  take_until(text, '\n');
  while (!text.empty()) {
    const std::string_view line = trimmed(take_until(text, '\n'));
    if (!line.empty() && !line.starts_with("processed ")) last = line;
  }
  return last.empty() ? head : head + ": " + std::string(last);
}

void give_up_walks(Plan& plan, std::size_t object, const std::string& why) {
  for (const Connection& each : plan.connections)
    if (each.object == object) use_frame_pointers(plan, plan.events[each.event], why);
}

}  // namespace

Result<std::vector<bpf::LoadedObject>> load_objects(Plan& plan, std::span<const bpf::UserObject> objects,
                                                    const bpf::StackWalker* walker) {
  std::vector<bpf::LoadedObject> loaded;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (walker != nullptr && is_unwound(plan, i)) {
      auto unwound = objects[i].load(walker->maps());
      if (unwound) {
        loaded.push_back(std::move(*unwound));
        continue;
      }
      give_up_walks(plan, i, "with the unwinder it is refused: " + in_a_line(unwound.error().what));
    }
    auto object = objects[i].load();
    if (!object) return std::move(object.error());
    loaded.push_back(std::move(*object));
  }
  return loaded;
}

}  // namespace tacho::record
