#include "record/stacks/code_maps.h"

#include <algorithm>
#include <iterator>

namespace tacho::record {

CodeMaps::Process& CodeMaps::process_of(std::uint32_t process) {
  Process& found = processes_[process];
  if (!found.ranges) found.ranges = std::make_shared<Ranges>();
  return found;
}

void CodeMaps::map(std::uint32_t process, const tacho_code_range& range, std::uint64_t time) {
  if (range.end <= range.start) return;
  Process& owner = process_of(process);
  if (time < owner.since) return;
  auto ranges = std::make_shared<Ranges>();
  ranges->reserve(owner.ranges->size() + 2);
  // What lies below the new one is gone; parts of it that stick out stay.
  for (const tacho_code_range& old : *owner.ranges) {
    tacho_code_range below = old, above = old;
    below.end = std::min(old.end, range.start);
    above.start = std::max(old.start, range.end);
    if (below.end > below.start) ranges->push_back(below);
    if (above.end > above.start) ranges->push_back(above);
  }
  const auto place = std::ranges::lower_bound(*ranges, range.start, {}, &tacho_code_range::start);
  ranges->insert(place, range);
  if (ranges->size() > TACHO_MOST_RANGES_OF_PROCESS) return;
  owner.ranges = std::move(ranges);
  changed_.insert(process);
}

void CodeMaps::fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time) {
  const auto from = processes_.find(parent);
  if (child == parent || from == processes_.end()) return;
  const auto ranges = from->second.ranges;  // before the map grows
  Process& made = process_of(child);
  if (time < made.since) return;
  made = {ranges, time, nullptr};
  changed_.insert(child);
}

void CodeMaps::exec(std::uint32_t process, std::uint64_t time) {
  Process& owner = process_of(process);
  if (time < owner.since) return;
  owner = {std::make_shared<Ranges>(), time, owner.ranges};
  changed_.insert(process);
}

void CodeMaps::remove(std::uint32_t process) {
  if (processes_.erase(process) != 0) changed_.insert(process);
}

std::vector<std::uint32_t> CodeMaps::take_changed() {
  std::vector<std::uint32_t> changed(changed_.begin(), changed_.end());
  changed_.clear();
  return changed;
}

std::shared_ptr<const CodeMaps::Ranges> CodeMaps::ranges(std::uint32_t process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : found->second.ranges;
}

std::shared_ptr<const CodeMaps::Ranges> CodeMaps::ranges_at(std::uint32_t process, std::uint64_t time) const {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return nullptr;
  return time != 0 && time < found->second.since ? found->second.before : found->second.ranges;
}

}  // namespace tacho::record
