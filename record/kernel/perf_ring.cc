#include "record/kernel/perf_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::record {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t), kHeader = sizeof(perf_event_header);

// Offsets of the event's id in records that have it elsewhere than at the end of the trailer.
constexpr std::size_t kOfLost = kHeader, kOfThrottle = kHeader + kWord,
                      kStreamOfThrottle = kHeader + 2 * kWord;

}  // namespace

void RenamedIds::rename(std::byte* word) const {
  std::uint64_t id = 0;
  std::memcpy(&id, word, kWord);
  if (const auto as = as_.find(id); as != as_.end()) std::memcpy(word, &as->second, kWord);
}

void RenamedIds::apply(std::vector<std::byte>& records, std::size_t begin) const {
  if (as_.empty()) return;
  for (std::size_t at = begin; records.size() - at >= kHeader + kWord;) {
    format::Cursor header(format::Bytes(records).subspan(at, kHeader));
    const std::uint32_t type = header.u32();
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < kHeader + kWord || size > records.size() - at) return;
    std::byte* const record = records.data() + at;
    const auto rename_at = [&](std::size_t offset) {
      if (offset + kWord <= size) rename(record + offset);
    };
    at += size;
    if (type == PERF_RECORD_SAMPLE) {
      rename_at(kHeader);
      continue;
    }
    if (type == PERF_RECORD_LOST) rename_at(kOfLost);
    if (type == PERF_RECORD_THROTTLE || type == PERF_RECORD_UNTHROTTLE) {
      rename_at(kOfThrottle);
      rename_at(kStreamOfThrottle);
    }
    rename(record + size - kWord);
  }
}

// Called for every record, so it reads without a cursor.
void RingGaps::look(format::Bytes records) {
  constexpr std::size_t kTimeOfSample = kHeader + 3 * kWord;
  std::size_t at = missing_;
  while (at < records.size() && records.size() - at >= kHeader) {
    perf_event_header header;
    std::memcpy(&header, records.data() + at, kHeader);
    if (header.size < kHeader) break;  // no record, which count_records() reports
    const std::size_t left = records.size() - at;
    if (header.type == PERF_RECORD_LOST) begin_ = std::min(begin_, last_time_);
    if (header.type == PERF_RECORD_SAMPLE &&
        std::min<std::size_t>(left, header.size) >= kTimeOfSample + kWord)
      std::memcpy(&last_time_, records.data() + at + kTimeOfSample, kWord);
    at += header.size;
  }
  missing_ = at > records.size() ? at - records.size() : 0;
}

Result<PerfRing> PerfRing::map(const format::Fd& event, std::size_t pages, std::size_t page_size,
                               RingKind kind) {
  const std::size_t size = (pages + 1) * page_size;  // the first is the control page
  // A read-only mapping makes the kernel overwrite old records.
  const int protection = kind == RingKind::Forward ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const memory = mmap(nullptr, size, protection, MAP_SHARED, event.get(), 0);
  if (memory == MAP_FAILED) return system_error("the ring of a perf event", errno);
  return PerfRing(format::Mapping(memory, size), kind);
}

void PerfRing::copy_records(std::vector<std::byte>& out) const {
  auto* page = reinterpret_cast<perf_event_mmap_page*>(memory_.bytes().data());
  const auto data = memory_.bytes().subspan(page->data_offset, page->data_size);
  const std::uint64_t newest = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  // A contiguous copy, the newest record first.
  std::vector<std::byte> whole;
  whole.reserve(data.size());
  const auto at = static_cast<std::ptrdiff_t>(newest & (data.size() - 1));
  whole.insert(whole.end(), data.begin() + at, data.end());
  whole.insert(whole.end(), data.begin(), data.begin() + at);
  // The oldest record may be partly overwritten; the space after it may be empty.
  std::vector<format::Bytes> records;
  for (format::Bytes rest(whole); rest.size() >= sizeof(perf_event_header);) {
    format::Cursor header(rest);
    header.u32();  // type
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < sizeof(perf_event_header) || size > rest.size()) break;
    records.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    out.insert(out.end(), record->begin(), record->end());
}

}  // namespace tacho::record
