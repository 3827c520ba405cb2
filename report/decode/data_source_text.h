// Where a memory access was answered from (PERF_SAMPLE_DATA_SRC), in words.
#pragma once

#include <cstdint>
#include <string>

namespace tacho::report {

// "1e05080021 |OP N/A|LVL ...|BLK  N/A", at most 99 characters, as perf cuts it.
std::string data_source_text(std::uint64_t source);

// Its parts. Each text has at most 63 characters, as perf's reports cut it.
enum class DataSourcePart : std::uint8_t { Level, Snoop, Tlb, Lock, Blocked };
// The bits by which two values differ; of levels, only the ones that perf's reports compare.
std::uint64_t data_source_bits(DataSourcePart part, std::uint64_t source);
std::string data_source_part(DataSourcePart part, std::uint64_t source);

}  // namespace tacho::report
