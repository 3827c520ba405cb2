#include "record/output/ring_compressor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "format/records/record_view.h"

namespace tacho::record {
namespace {

// The missing bytes of the last record; `last`: its start. Records and rings are multiples of 8 bytes, so a
// header is never cut.
std::size_t bytes_missing(format::Bytes records, std::size_t& last) {
  for (last = 0; records.size() - last >= format::kRecordHeaderSize;) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + last + 6, sizeof size);
    if (size < format::kRecordHeaderSize) return 0;  // no record, which count_records() reports
    if (size > records.size() - last) return size - (records.size() - last);
    last += size;
  }
  return 0;
}

}  // namespace

Result<std::optional<RingCompressor>> RingCompressor::for_level(std::optional<int> level) {
  if (level != format::RecordCompressor::kQuickLevel) return std::optional<RingCompressor>();
  auto compressor = format::RecordCompressor::create(*level);
  if (!compressor) return std::move(compressor.error());
  return std::optional(RingCompressor(std::move(*compressor)));
}

void RingCompressor::compress_run(format::Bytes run, std::vector<std::byte>& out,
                                  std::vector<CompressedRun>& packed) {
  run = end_record(run, out, packed);
  while (!run.empty()) {
    const std::size_t begin = out.size();
    const std::size_t size = compressor_.compress_by_delta(run, out);
    if (size == 0) break;
    add_run(begin, out.size(), run.first(size), packed);
    run = run.subspan(size);
  }
  std::size_t last = 0;
  missing_ = bytes_missing(run, last);
  cut_at_ = out.size() + last;
  is_cut_alone_ = last == 0;
  out.insert(out.end(), run.begin(), run.end());
}

// Appends the rest of the record that began in the run before. A single record between compressed ones is
// compressed with them.
format::Bytes RingCompressor::end_record(format::Bytes run, std::vector<std::byte>& out,
                                         std::vector<CompressedRun>& packed) {
  if (missing_ == 0) return run;
  const format::Bytes end = run.first(std::min(missing_, run.size()));
  out.insert(out.end(), end.begin(), end.end());
  missing_ -= end.size();
  if (missing_ == 0 && is_cut_alone_)
    add_run(cut_at_, out.size(), format::Bytes(out).subspan(cut_at_), packed);
  return run.subspan(end.size());
}

// Extends the run before, if it is adjacent.
void RingCompressor::add_run(std::size_t begin, std::size_t end, format::Bytes records,
                             std::vector<CompressedRun>& packed) const {
  if (packed.size() == first_ || packed.back().end != begin) packed.push_back({begin, begin, 0, {}});
  CompressedRun& run = packed.back();
  run.end = end;
  run.inflated += records.size();
  count_records(records, run.counts);
}

}  // namespace tacho::record
