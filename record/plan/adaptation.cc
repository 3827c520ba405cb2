#include "record/plan/adaptation.h"

#include <cstdint>

#include "record/plan/stack_choice.h"

namespace tacho::record {

Plan adapted(Plan plan, const Adaptation& adaptation) {
  for (const auto& [event, why] : adaptation.not_unwound)
    use_frame_pointers(plan.events[event], why, plan.notes);
  for (const auto& [event, attr] : adaptation.attrs) plan.events[event].attr = attr;
  if (adaptation.ring_pages != 0) plan.ring_pages = adaptation.ring_pages;
  if (adaptation.sideband_pages != 0) plan.sideband_pages = adaptation.sideband_pages;
  plan.notes.insert(plan.notes.end(), adaptation.notes.begin(), adaptation.notes.end());
  return plan;
}

Adaptation without_unwinding(const Plan& plan, const Host& host, const std::string& why) {
  Adaptation adaptation;
  for (std::size_t event = 0; event < plan.events.size(); ++event)
    if (plan.events[event].unwound_frames != 0) adaptation.not_unwound.emplace(event, why);
  relax_sideband(plan, host, adaptation);
  return adaptation;
}

void relax_sideband(const Plan& plan, const Host& host, Adaptation& adaptation) {
  constexpr std::size_t kWakeupPart = 4;  // fraction of a ring that wakes the recorder
  format::EventAttr attr = plan.events.back().attr;
  attr.wakeup = static_cast<std::uint32_t>(plan.sideband_pages * host.page_size / kWakeupPart);
  adaptation.attrs.insert_or_assign(plan.events.size() - 1, attr);
}

}  // namespace tacho::record
