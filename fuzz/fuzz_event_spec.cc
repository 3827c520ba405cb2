// The text after -e: any text gives events or a message, and what it gives is within what the parser
// promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "record/events/event_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto events = tacho::record::parse_events(text);
  if (!events) return events.error().what.empty() ? std::abort(), 0 : 0;
  if (events->empty()) std::abort();
  for (const auto& event : *events) {
    if (event.period && event.frequency) std::abort();
    const bool is_object = event.object() != nullptr;
    if ((is_object && event.object()->path.empty()) || is_object != event.name.empty()) std::abort();
  }
  return 0;
}
