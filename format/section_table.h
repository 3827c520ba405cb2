// Where the header sections of a capture file lie: by the table behind the data, by our own before it
// (file_head.h) when the recorder was killed, or by the first one where it has moved to when bytes of the
// data are missing.
#pragma once

#include <cstdint>
#include <vector>

#include "format/diagnostics.h"
#include "format/file_head.h"
#include "format/perf_abi.h"

namespace tacho::format {

struct SectionTable {
  std::vector<FeatureSection> sections;  // each inside the file
  bool is_closed = true;                 // the recorder finished the file
  std::uint64_t missing = 0;             // bytes of the data that the file does not have
};

// Reads the tables of the file `fd`, whose start is `head` and which has `file_size` bytes; what is wrong
// with them is told in `diagnostics`.
SectionTable find_sections(int fd, const FileHead& head, std::uint64_t file_size, Diagnostics& diagnostics);

// Header sections that say something by being there.
inline bool is_flag(std::uint64_t feature) {
  return feature == abi::kFeatureBranchStack || feature == abi::kFeatureStat;
}

}  // namespace tacho::format
