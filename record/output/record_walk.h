// Counts whole records as the kernel wrote them: samples, losses, times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::record {

struct RecordCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;                                       // what LOST records say
  std::uint64_t first_time = ~std::uint64_t{0}, last_time = 0;  // of samples, ns

  std::uint64_t lost_first = ~std::uint64_t{0}, lost_last = 0;  // when LOST records were written, ns
  std::uint64_t sideband = 0;                                   // records about processes and their mappings

  void add(const RecordCounts& more);

  bool operator==(const RecordCounts&) const = default;
};

// Of `records` from `begin` on: removes what the kernel leaves behind the trailers of BPF_EVENT records
// (format::declared_bytes()), so that every reader finds each trailer at its record's end. Bytes that are no
// record end it.
void cut_behind_trailers(std::vector<std::byte>& records, std::size_t begin, std::size_t trailer);

// Counts `records`; false when they are not whole records one after another.
bool count_records(format::Bytes records, RecordCounts& counts);

}  // namespace tacho::record
