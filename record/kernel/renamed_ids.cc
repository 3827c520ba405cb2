#include "record/kernel/renamed_ids.h"

#include <linux/perf_event.h>

#include <cstring>

#include "format/cursor.h"

namespace tacho::record {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t), kHeader = sizeof(perf_event_header);

// Where a record says which event it is of, beside the end of its trailer.
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

}  // namespace tacho::record
