#include "record/stacks/mmap_events.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

std::optional<MmapEvent> event_of(const format::Record& record) {
  MmapEvent event;
  if (const auto* const mapping = std::get_if<format::MmapRecord>(&record)) {
    if (mapping->is_data || mapping->pid == ~0U || mapping->length == 0) return std::nullopt;
    event.process = mapping->pid;
    event.start = mapping->start;
    event.end = mapping->start + mapping->length;
    event.offset = mapping->page_offset;
    event.file = file_of(*mapping);
    return event;
  }
  if (const auto* const comm = std::get_if<format::CommRecord>(&record)) {
    if (!comm->is_exec) return std::nullopt;
    event.kind = MmapEvent::Kind::Exec;
    event.process = comm->pid;
    return event;
  }
  if (const auto* const task = std::get_if<format::TaskRecord>(&record)) {
    event.kind = task->is_exit ? MmapEvent::Kind::Exit : MmapEvent::Kind::Fork;
    event.process = task->pid;
    event.parent = task->parent_pid;
    if (task->is_exit ? task->pid != task->tid : task->pid == task->parent_pid) return std::nullopt;
    return event;
  }
  return std::nullopt;
}

}  // namespace

void parse_mmap_events(format::Bytes records, const format::EventAttr& attr, std::vector<MmapEvent>& events) {
  while (records.size() >= format::kRecordHeaderSize) {
    std::uint16_t size = 0;
    std::memcpy(&size, records.data() + sizeof(std::uint32_t) + sizeof size, sizeof size);
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    const auto record = format::whole_record(records.first(size), std::endian::native);
    records = records.subspan(size);
    const bool matters = record.type == abi::kRecordMmap2 || record.type == abi::kRecordMmap ||
                         record.type == abi::kRecordComm || record.type == abi::kRecordFork ||
                         record.type == abi::kRecordExit;
    if (!matters) continue;
    const auto parsed = format::parse_record(record, attr);
    auto found = parsed ? event_of(*parsed) : std::nullopt;
    if (!found) continue;
    found->time = format::record_time(record, attr).value_or(0);
    events.push_back(std::move(*found));
  }
}

void MmapHistory::note(MmapKey place, std::uint32_t module) {
  const auto [at, is_new] = known_[place.process].try_emplace(place.start);
  at->second.module = module;
  if (!is_new) return;
  at->second.sequence = ++last_turn_;
  turns_.push_back({place, last_turn_});
  if (turns_.size() <= most_) return;
  const Turn oldest = turns_.front();
  turns_.pop_front();
  const auto process = known_.find(oldest.place.process);
  if (process == known_.end()) return;
  const auto known = process->second.find(oldest.place.start);
  if (known != process->second.end() && known->second.sequence == oldest.sequence)
    process->second.erase(known);
  if (process->second.empty()) known_.erase(process);
}

std::optional<std::uint32_t> MmapHistory::module_at(MmapKey place) const {
  const auto process = known_.find(place.process);
  if (process == known_.end()) return std::nullopt;
  const auto known = process->second.find(place.start);
  return known == process->second.end() ? std::nullopt : std::optional(known->second.module);
}

void MmapHistory::forget(std::uint32_t process) { known_.erase(process); }

void MmapHistory::forget_modules(const std::unordered_set<std::uint32_t>& modules) {
  for (auto& [process, starts] : known_)
    std::erase_if(starts, [&modules](const auto& known) { return modules.contains(known.second.module); });
}

CodeMaps::Process& CodeMaps::process_of(std::uint32_t process) {
  Process& found = processes_[process];
  if (!found.ranges) found.ranges = std::make_shared<Ranges>();
  return found;
}

void CodeMaps::map(std::uint32_t process, const tacho_code_range& range, std::uint64_t time) {
  if (range.end <= range.start) return;
  Process& owner = process_of(process);
  if (time < owner.since) return;
  // Ranges covered by the new one are removed; their parts outside of it stay.
  const Ranges& old = *owner.ranges;
  const auto first = std::ranges::upper_bound(old, range.start, {}, &tacho_code_range::end);
  const auto last = std::ranges::lower_bound(first, old.end(), range.end, {}, &tacho_code_range::start);
  const bool is_left_below = first != last && first->start < range.start;
  const bool is_left_above = first != last && std::prev(last)->end > range.end;
  const auto kept = old.size() - static_cast<std::size_t>(last - first);
  const std::size_t size = kept + 1 + (is_left_below ? 1 : 0) + (is_left_above ? 1 : 0);
  if (size > most_) {  // before all are copied: a process may map and unmap without end
    if (drop_older_code(owner)) map(process, range, time);
    return;
  }
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
  if (range.module == TACHO_MODULE_OF_NO_FILE) {
    owner.of_no_file.push_back(range.start);
    if (owner.of_no_file.size() > most_) owner.of_no_file.pop_front();
  }
  changed_.insert(process);
}

// False: there is none.
bool CodeMaps::drop_older_code(Process& owner) {
  if (owner.of_no_file.empty()) return false;
  const auto half = static_cast<std::ptrdiff_t>((owner.of_no_file.size() + 1) / 2);
  const std::unordered_set<std::uint64_t> older(owner.of_no_file.begin(), owner.of_no_file.begin() + half);
  owner.of_no_file.erase(owner.of_no_file.begin(), owner.of_no_file.begin() + half);
  auto ranges = std::make_shared<Ranges>(*owner.ranges);
  const auto dropped = std::erase_if(*ranges, [&older](const tacho_code_range& range) {
    return range.module == TACHO_MODULE_OF_NO_FILE && older.contains(range.start);
  });
  owner.ranges = std::move(ranges);
  return dropped != 0;
}

void CodeMaps::running(std::uint32_t process, Ranges ranges) {
  if (ranges.empty() || ranges.size() > most_ || processes_.contains(process)) return;
  Process& owner = process_of(process);
  for (const tacho_code_range& range : ranges)
    if (range.module == TACHO_MODULE_OF_NO_FILE) owner.of_no_file.push_back(range.start);
  *owner.ranges = std::move(ranges);
  changed_.insert(process);
}

void CodeMaps::fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time) {
  if (child == parent) return;
  if (const auto known = processes_.find(child); known != processes_.end() && time < known->second.since)
    return;
  const auto from = processes_.find(parent);
  if (from == processes_.end())
    return remove(child);  // the known ranges belong to an earlier process with this pid
  Process made{from->second.ranges, time, {}, from->second.of_no_file};
  processes_[child] = std::move(made);
  changed_.insert(child);
}

void CodeMaps::exec(std::uint32_t process, std::uint64_t time) {
  const auto known = processes_.find(process);
  if (known != processes_.end() && time < known->second.since) return;
  std::vector<Former> former;
  if (known != processes_.end()) {
    former = std::move(known->second.former);
    if (former.size() == kMostFormer) former.erase(former.begin());
    former.push_back({known->second.since, time, known->second.ranges});
  } else {
    former.push_back({0, time, nullptr});
  }
  processes_[process] = {std::make_shared<Ranges>(), time, std::move(former), {}};
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

CodeMaps::AtTime CodeMaps::ranges_at(std::uint32_t process, std::uint64_t time) const {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return {};
  const Process& owner = found->second;
  if (time == 0 || time >= owner.since) return {owner.ranges, true};
  const auto former = std::ranges::upper_bound(owner.former, time, {}, &Former::until);
  const bool is_known = former != owner.former.end() && time >= former->since;
  return {is_known ? former->ranges : nullptr, false};
}

}  // namespace tacho::record
