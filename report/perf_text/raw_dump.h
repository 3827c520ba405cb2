// perf report -D: every record with its bytes and fields. Records of perf itself come in file order, those of
// the kernel in the order of their times.
#pragma once

#include <string_view>

#include "format/container/capture_reader.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Reads all of `capture`; the counts of --stats follow. `file` is the capture's name in the records'
// positions. Symbols are not resolved; samples show the mapped file.
void write_raw_trace(TextOutput& out, format::CaptureReader& capture, format::Diagnostics& diagnostics,
                     std::string_view file, Names names);

}  // namespace tacho::report
