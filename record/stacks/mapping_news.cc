#include "record/stacks/mapping_news.h"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "format/perf_abi.h"
#include "format/record.h"
#include "format/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

std::optional<MappingNews> news_in(const format::Record& record) {
  MappingNews news;
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
    news.kind = MappingNews::Kind::Exec;
    news.process = comm->pid;
    return news;
  }
  if (const auto* const task = std::get_if<format::TaskRecord>(&record)) {
    news.kind = task->is_exit ? MappingNews::Kind::Exit : MappingNews::Kind::Fork;
    news.process = task->pid;
    news.parent = task->parent_pid;
    if (task->is_exit ? task->pid != task->tid : task->pid == task->parent_pid) return std::nullopt;
    return news;
  }
  return std::nullopt;
}

}  // namespace

void note_news(format::Bytes records, const format::EventAttr& attr, std::vector<MappingNews>& news) {
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

}  // namespace tacho::record
