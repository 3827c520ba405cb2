#include "record/kernel/perf_ring.h"

#include <sys/mman.h>

#include <cerrno>

namespace tacho::record {

Result<PerfRing> PerfRing::map(const format::Fd& event, std::size_t pages, std::size_t page_size,
                               RingKind kind) {
  const std::size_t size = (pages + 1) * page_size;  // the first is the control page
  // The kernel takes a mapping that cannot be written to as the wish to write over what is there.
  const int protection = kind == RingKind::Forward ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const memory = mmap(nullptr, size, protection, MAP_SHARED, event.get(), 0);
  if (memory == MAP_FAILED) return system_error("the ring of a perf event", errno);
  return PerfRing(format::Mapping(memory, size), kind);
}

void PerfRing::copy_records(std::vector<std::byte>& out) const {
  const auto* page = reinterpret_cast<const perf_event_mmap_page*>(memory_.bytes().data());
  const auto data = memory_.bytes().subspan(page->data_offset, page->data_size);
  // The address is the kernel's and not written to here, but atomic_ref wants it so.
  auto& head = const_cast<__u64&>(page->data_head);
  const std::uint64_t newest = std::atomic_ref(head).load(std::memory_order_acquire);
  // Unrolled: what wraps lies in one piece, the newest record first.
  std::vector<std::byte> whole;
  whole.reserve(data.size());
  const auto at = static_cast<std::ptrdiff_t>(newest & (data.size() - 1));
  whole.insert(whole.end(), data.begin() + at, data.end());
  whole.insert(whole.end(), data.begin(), data.begin() + at);
  // The oldest one may be half written over; behind it lies what was never written to.
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
