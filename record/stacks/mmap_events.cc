#include "record/stacks/mmap_events.h"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/record_view.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

std::optional<MmapEvent> news_in(const format::Record& record) {
  MmapEvent news;
  if (const auto* const mapping = std::get_if<format::MmapRecord>(&record)) {
    if (mapping->is_data || mapping->pid == ~0U || mapping->length == 0) return std::nullopt;
    news.process = mapping->pid;
    news.start = mapping->start;
    news.end = mapping->start + mapping->length;
    news.offset = mapping->page_offset;
    news.file = file_of(*mapping);
    return news;
  }
  if (const auto* const comm = std::get_if<format::CommRecord>(&record)) {
    if (!comm->is_exec) return std::nullopt;
    news.kind = MmapEvent::Kind::Exec;
    news.process = comm->pid;
    return news;
  }
  if (const auto* const task = std::get_if<format::TaskRecord>(&record)) {
    news.kind = task->is_exit ? MmapEvent::Kind::Exit : MmapEvent::Kind::Fork;
    news.process = task->pid;
    news.parent = task->parent_pid;
    if (task->is_exit ? task->pid != task->tid : task->pid == task->parent_pid) return std::nullopt;
    return news;
  }
  return std::nullopt;
}

}  // namespace

void parse_mmap_events(format::Bytes records, const format::EventAttr& attr, std::vector<MmapEvent>& news) {
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
    auto found = parsed ? news_in(*parsed) : std::nullopt;
    if (!found) continue;
    found->time = format::record_time(record, attr).value_or(0);
    news.push_back(std::move(*found));
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

}  // namespace tacho::record
