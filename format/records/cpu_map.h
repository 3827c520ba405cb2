// The body of PERF_RECORD_CPU_MAP, and of EVENT_UPDATE for CPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::format {

struct CpuList {
  std::vector<std::int16_t> cpus;  // -1: any
};
struct CpuMask {
  std::uint16_t word_size = 0;       // bytes; other sizes than 4 and 8 are not known
  std::vector<std::uint64_t> words;  // the lowest CPUs first
  Bytes unknown;                     // in words of another size
};
struct CpuRange {
  bool has_any = false;
  std::uint16_t first = 0, last = 0;
};
struct CpuMap {
  std::uint16_t kind = 0;  // as recorded; of an unknown one, `cpus` is what a range would be
  std::size_t size = 0;    // bytes that it takes
  std::variant<CpuList, CpuMask, CpuRange> cpus;  // cut off where the record ends
};

// Afterwards `in` has failed if the map is cut off, or if its kind or the size of its words is not known.
CpuMap parse_cpu_map(Cursor& in);
// Its CPUs in their order; -1: any.
std::vector<std::int64_t> cpus_in(const CpuMap& map);

}  // namespace tacho::format
