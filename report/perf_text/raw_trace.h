// Every record with its bytes and what they mean, in the order in which records take effect: perf report -D.
// Records of perf's own stand where they were read, the kernel's where their time is due.
#pragma once

#include <string_view>

#include "format/container/capture_reader.h"
#include "report/output/printable.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Reads all of `capture`. `file`: what the records' places are called after, as the user named the capture.
// Ends with the numbers of --stats. Symbols are not looked up: samples show the file that they hit.
void write_raw_trace(TextOutput& out, format::CaptureReader& capture, format::Diagnostics& diagnostics,
                     std::string_view file, Names names);

}  // namespace tacho::report
