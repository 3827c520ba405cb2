#include "record/output/record_walk.h"

#include <algorithm>

#include "format/perf_abi.h"
#include "format/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Every planned event samples IDENTIFIER, IP, TID and TIME, in this order.
constexpr std::size_t kTimeOffset = 3 * sizeof(std::uint64_t);

void count_sample(format::Cursor body, RecordCounts& counts) {
  ++counts.samples;
  body.skip(kTimeOffset);
  const std::uint64_t time = body.u64();
  if (body.failed()) return;
  counts.first_time = std::min(counts.first_time, time);
  counts.last_time = std::max(counts.last_time, time);
}

// Behind the count stands what every record ends with: TID, TIME, ...
void count_loss(format::Cursor body, RecordCounts& counts) {
  body.u64();  // id
  counts.lost += body.u64();
  body.u64();  // thread
  const std::uint64_t time = body.u64();
  if (body.failed()) return;
  counts.lost_first = std::min(counts.lost_first, time);
  counts.lost_last = std::max(counts.lost_last, time);
}

}  // namespace

bool count_records(format::Bytes records, RecordCounts& counts) {
  format::Cursor in(records);
  while (in.left() > 0) {
    const std::uint32_t type = in.u32();
    in.u16();  // misc
    const std::uint16_t size = in.u16();
    if (size < format::kRecordHeaderSize) return false;
    format::Cursor body(in.take(size - format::kRecordHeaderSize));
    if (in.failed()) return false;
    if (type == abi::kRecordSample) count_sample(body, counts);
    if (type == abi::kRecordLost) count_loss(body, counts);
  }
  return true;
}

}  // namespace tacho::record
