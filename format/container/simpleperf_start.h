// simpleperf's own records at the start of its data: tracepoint formats and kernel symbols, which perf and
// tacho keep in header sections. A record of more than 65,535 bytes is split into several SPLIT records and a
// SPLIT_END.
#pragma once

#include <bit>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "format/container/file_head.h"

namespace tacho::format {

// Reads these records at the start of `data` into `features`; fields that are already set are kept.
void read_simpleperf_start(int fd, const FileSection& data, std::endian order, Features& features,
                           Diagnostics& diagnostics);

}  // namespace tacho::format
