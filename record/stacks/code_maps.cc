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
  // What lies below the new one is gone; parts of it that stick out stay.
  const Ranges& old = *owner.ranges;
  const auto first = std::ranges::upper_bound(old, range.start, {}, &tacho_code_range::end);
  const auto last = std::ranges::lower_bound(first, old.end(), range.end, {}, &tacho_code_range::start);
  const bool is_left_below = first != last && first->start < range.start;
  const bool is_left_above = first != last && std::prev(last)->end > range.end;
  const auto kept = old.size() - static_cast<std::size_t>(last - first);
  const std::size_t size = kept + 1 + (is_left_below ? 1 : 0) + (is_left_above ? 1 : 0);
  if (size > most_) return;  // before all are copied: a process may map and unmap for ever
  auto ranges = std::make_shared<Ranges>();
  ranges->reserve(size);
  ranges->assign(old.begin(), first);
  if (is_left_below) {
    ranges->push_back(*first);
    ranges->back().end = range.start;
  }
  ranges->push_back(range);
  if (is_left_above) {
    ranges->push_back(*std::prev(last));
    ranges->back().start = range.end;
  }
  ranges->insert(ranges->end(), last, old.end());
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
