#include "record/kernel/perf_clock.h"

#include <sys/prctl.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "record/host/host.h"
#include "record/kernel/perf_event.h"
#include "record/kernel/perf_ring.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Counts nothing, and needs no rights for the kernel's code.
PlannedEvent comm_event() {
  PlannedEvent event;
  event.attr.size = format::kCompatibleAttrSize;
  event.attr.type = abi::kSoftware;
  event.attr.config = abi::kDummy;
  event.attr.sample_type = abi::kSampleTime;
  event.attr.flags = abi::kComm | abi::kSampleIdAll | abi::kExcludeKernel | abi::kExcludeHv;
  return event;
}

}  // namespace

Result<PerfClockTime> read_perf_clock(std::size_t page_size) {
  const auto event = open_event(comm_event(), 0, -1);
  if (!event) return event.error();
  auto ring = PerfRing::map(*event, 1, page_size);
  if (!ring) return std::move(ring.error());
  // A name that is set again is a COMM record, too.
  std::array<char, 16> name{};
  if (::prctl(PR_GET_NAME, name.data()) != 0) return system_error("prctl", errno);
  constexpr int kReadings = 5;  // the thread may be interrupted in some
  PerfClockTime best;
  std::uint64_t least = ~std::uint64_t{0};  // ns between the two readings of CLOCK_REALTIME
  for (int i = 0; i < kReadings; ++i) {
    const std::uint64_t before = clock_now(CLOCK_REALTIME);
    if (::prctl(PR_SET_NAME, name.data()) != 0) return system_error("prctl", errno);
    const std::uint64_t apart = clock_now(CLOCK_REALTIME) - before;  // huge if it was set back
    // The time is the end of the record (sample_id_all).
    std::uint64_t time = 0;
    ring->drain([&](format::Bytes records) {
      if (records.size() >= sizeof time)
        std::memcpy(&time, records.data() + records.size() - sizeof time, sizeof time);
    });
    if (time == 0 || apart >= least) continue;
    least = apart;
    best = {.perf_ns = time, .wall_ns = before + apart / 2};
  }
  if (best.perf_ns == 0) return Error{"the kernel wrote no COMM record"};
  return best;
}

}  // namespace tacho::record
