// Counts of whole records, and the bytes behind their trailers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::record {

// Counts of whole records as the kernel wrote them.
struct RecordCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;                                       // sum of LOST records
  std::uint64_t first_time = ~std::uint64_t{0}, last_time = 0;  // of samples, ns

  // Of losses: the time of the sample before the first one, and of the last LOST record, ns.
  std::uint64_t lost_first = ~std::uint64_t{0}, lost_last = 0;
  std::uint64_t sideband = 0;  // records about processes and their mappings

  void add_counts(const RecordCounts& more);

  bool operator==(const RecordCounts&) const = default;
};

// For `records` from `begin` on: removes the bytes that the kernel leaves after the trailers of BPF_EVENT
// records (format::declared_bytes()), so that each trailer is at its record's end. Stops at bytes that are no
// record.
void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer);

// Counts `records`; false when they are not whole records one after another. They may be of several rings, so
// `lost_first` is at most the time of a LOST record (RingGaps of record/kernel knows the sample before it).
bool count_records(format::Bytes records, RecordCounts& counts);

}  // namespace tacho::record
