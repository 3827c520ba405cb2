#include "record/kernel/perf_ring.h"

#include <sys/mman.h>

#include <cerrno>

namespace tacho::record {

Result<PerfRing> PerfRing::map(const format::Fd& event, std::size_t pages, std::size_t page_size) {
  const std::size_t size = (pages + 1) * page_size;  // the first is the control page
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (memory == MAP_FAILED) return system_error("the ring of a perf event", errno);
  return PerfRing(format::Mapping(memory, size));
}

}  // namespace tacho::record
