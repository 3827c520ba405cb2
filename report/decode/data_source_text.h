// Where a memory access was answered from (PERF_SAMPLE_DATA_SRC), in words.
#pragma once

#include <cstdint>
#include <string>

namespace tacho::report {

// "1e05080021 |OP N/A|LVL ...|BLK  N/A", at most 99 characters, as perf cuts it.
std::string data_source_text(std::uint64_t source);

}  // namespace tacho::report
