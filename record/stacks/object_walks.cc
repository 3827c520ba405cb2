#include "record/stacks/object_walks.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "record/stacks/stack_choice.h"

namespace tacho::record {
namespace {

bool is_unwound(const Plan& plan, std::size_t object) {
  return std::ranges::any_of(plan.connections, [&](const Connection& each) {
    return each.object == object && plan.events[each.event].unwound_frames != 0;
  });
}

// Of an error in several lines, which ends with those of the verifier: where it was, and what the verifier
// said last before it counts what it has processed.
std::string in_a_line(std::string_view text) {
  const std::string head(text.substr(0, std::min(text.find('\n'), text.rfind("; its last lines"))));
  std::string said;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at)) {
    const std::size_t begin = std::min(text.find_first_not_of("\n ", at), text.size());
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    if (!line.empty() && !line.starts_with("processed ")) said = line;
    at = begin;
  }
  return said.empty() ? head : head + ": " + said;
}

void give_up_walks(Plan& plan, std::size_t object, const std::string& why) {
  for (const Connection& each : plan.connections) {
    if (each.object != object) continue;
    PlannedEvent& event = plan.events[each.event];
    use_frame_pointers(plan, event, why);
  }
}

}  // namespace

Result<> load_objects(Plan& plan, std::span<bpf::UserObject> objects, const bpf::StackWalker* walker) {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    bpf::UserObject& object = objects[i];
    if (walker != nullptr && is_unwound(plan, i)) {
      const auto linked = object.walk_stacks(walker->maps());
      const auto loaded = linked ? object.load_and_attach() : linked;
      if (loaded) continue;
      give_up_walks(plan, i, "with the unwinder it is refused: " + in_a_line(loaded.error().what));
      if (auto without = object.walk_stacks({}); !without) return without;
    }
    if (auto done = object.load_and_attach(); !done) return done;
  }
  return Done{};
}

}  // namespace tacho::record
