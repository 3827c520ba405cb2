#include "record/output/record_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

struct Header {
  std::uint32_t type;
  std::uint16_t misc, size;
};
static_assert(sizeof(Header) == format::kRecordHeaderSize);

// Every planned event has IDENTIFIER, IP, TID and TIME, in this order.
constexpr std::size_t kTimeOffset = 3 * sizeof(std::uint64_t);

// Called for every sample, so it reads without a cursor.
void count_sample(format::Bytes body, RecordCounts& counts) {
  ++counts.samples;
  std::uint64_t time;
  if (body.size() < kTimeOffset + sizeof time) return;
  std::memcpy(&time, body.data() + kTimeOffset, sizeof time);
  counts.first_time = std::min(counts.first_time, time);
  counts.last_time = std::max(counts.last_time, time);
}

// After the count comes the trailer of every record: TID, TIME, ...
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

void RecordCounts::add_counts(const RecordCounts& more) {
  samples += more.samples;
  lost += more.lost;
  first_time = std::min(first_time, more.first_time);
  last_time = std::max(last_time, more.last_time);
  lost_first = std::min(lost_first, more.lost_first);
  lost_last = std::max(lost_last, more.lost_last);
  sideband += more.sideband;
}

void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer) {
  std::size_t to = begin;
  Header header;
  for (std::size_t at = begin; at < records.size(); at += header.size) {
    const format::Bytes rest = format::Bytes(records).subspan(at);
    if (rest.size() >= sizeof header) std::memcpy(&header, rest.data(), sizeof header);
    if (rest.size() < sizeof header || header.size < sizeof header || header.size > rest.size()) {
      std::memmove(records.data() + to, rest.data(), rest.size());
      to += rest.size();
      break;
    }
    Header kept = header;
    if (header.type == abi::kRecordKsymbol || header.type == abi::kRecordBpfEvent)
      kept.size = static_cast<std::uint16_t>(
          format::declared_bytes(format::whole_record(rest.first(header.size), std::endian::native), trailer)
              .size());
    if (to != at) std::memmove(records.data() + to, rest.data(), kept.size);
    std::memcpy(records.data() + to, &kept, sizeof kept);
    to += kept.size;
  }
  records.resize(to);
}

bool count_records(format::Bytes records, RecordCounts& counts) {
  Header header;
  RecordCounts sum = counts;
  bool is_whole = true;
  for (std::size_t at = 0; at < records.size(); at += header.size) {
    const std::size_t left = records.size() - at;
    is_whole = left >= sizeof header;
    if (!is_whole) break;
    std::memcpy(&header, records.data() + at, sizeof header);
    is_whole = header.size >= sizeof header && header.size <= left;
    if (!is_whole) break;
    const auto body = records.subspan(at + sizeof header, header.size - sizeof header);
    if (header.type == abi::kRecordSample) count_sample(body, sum);
    if (header.type == abi::kRecordLost) count_loss(format::Cursor(body), sum);
    if (header.type == abi::kRecordMmap2 || header.type == abi::kRecordMmap ||
        header.type == abi::kRecordComm || header.type == abi::kRecordExit)
      ++sum.sideband;
  }
  counts = sum;
  return is_whole;
}

}  // namespace tacho::record
