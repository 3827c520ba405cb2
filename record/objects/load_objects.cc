#include "record/objects/load_objects.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "record/parse_text.h"

namespace tacho::record {
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

void give_up_walks(const Plan& plan, std::size_t object, const std::string& why, Adaptation& adaptation) {
  for (const Connection& each : plan.connections)
    if (each.object == object && plan.events[each.event].unwound_frames != 0)
      adaptation.not_unwound.emplace(each.event, why);
}

}  // namespace

Result<LoadedObjects> load_objects(const Plan& plan, std::span<const bpf::UserObject> objects,
                                   const bpf::StackWalker* walker) {
  LoadedObjects loaded;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (walker != nullptr && is_unwound(plan, i)) {
      auto unwound = objects[i].load(walker->maps());
      if (unwound) {
        loaded.objects.push_back(std::move(*unwound));
        continue;
      }
      give_up_walks(plan, i, "with the unwinder it is refused: " + in_a_line(unwound.error().what),
                    loaded.adaptation);
    }
    auto object = objects[i].load();
    if (!object) return std::move(object.error());
    loaded.objects.push_back(std::move(*object));
  }
  return loaded;
}

}  // namespace tacho::record
