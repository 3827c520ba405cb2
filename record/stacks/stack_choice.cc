#include "record/stacks/stack_choice.h"

#include <algorithm>
#include <utility>

#include "format/perf_abi.h"

namespace tacho::record {
namespace {

constexpr std::size_t kWakeupPart = 4;  // of a ring, until somebody looks
// A header's section stays small, whatever events are called.
constexpr std::size_t kMostFacts = 64, kLongestName = 128;

std::string described(const PlannedEvent& event) {
  if (event.unwound_frames != 0) return "unwound in the kernel (eh)";
  return "frame pointers, since " + event.no_unwinding;
}

}  // namespace

bool may_use_frame_pointers(const Plan& plan) {
  return std::ranges::all_of(plan.events, [](const PlannedEvent& event) {
    return event.unwound_frames == 0 || event.may_use_frame_pointers;
  });
}

void use_frame_pointers(Plan& plan, const Host& host, const std::string& why) {
  for (PlannedEvent& event : plan.events) {
    const std::uint16_t frames = std::exchange(event.unwound_frames, 0);
    if (frames == 0) continue;
    event.no_unwinding = why.substr(0, why.find('\n'));
    if (frames > kKernelFrames) event.attr.sample_max_stack = frames;  // they were asked for
  }
  // Nobody waits for each mapping.
  plan.events.back().attr.wakeup =
      static_cast<std::uint32_t>(plan.sideband_pages * host.page_size / kWakeupPart);
}

format::StringPairs facts_of_choice(const Plan& plan) {
  format::StringPairs facts;
  for (const PlannedEvent& event : plan.events) {
    const bool is_wanted = event.unwound_frames != 0 || !event.no_unwinding.empty();
    if (!is_wanted || !event.attr.samples(format::abi::kSampleCallchain) || facts.size() == kMostFacts)
      continue;
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
