// What a capture of simpleperf has in records of its own at the start of its data, where perf and we have
// sections of the header: descriptions of tracepoints, and the kernel's symbols. One of more than 65,535
// bytes is cut into the bodies of several SPLIT records, behind which is a SPLIT_END.
#pragma once

#include <bit>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "format/container/file_head.h"

namespace tacho::format {

// Reads the records that stand in front of all others in `data`. What `features` has already stays.
void read_simpleperf_start(int fd, const FileSection& data, std::endian order, Features& features,
                           Diagnostics& diagnostics);

}  // namespace tacho::format
