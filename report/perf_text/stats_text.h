// How many records of each type a capture holds, and how many samples of each event: perf report --stats.
#pragma once

#include "format/capture_reader.h"
#include "report/output/printable.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Reads all records of `reader`; `diagnostics` gets those that cannot be counted for an event.
void write_stats(TextBuffer& out, format::CaptureReader& reader, format::Diagnostics& diagnostics,
                 Names names);

}  // namespace tacho::report
