// What a capture's header says, as lines of text: perf's own, and ours about what we added to it.
#pragma once

#include "format/capture_reader.h"
#include "report/printable.h"
#include "report/text_output.h"

namespace tacho::report {

// perf's block: "# ========", layout, features, what is missing, "# ========". A pipe's features are not in
// it: they come with the records.
void write_header(TextBuffer& out, const format::CaptureLayout& layout, const format::EventSet& events,
                  const format::Features& features, Names names);
// The lines about features alone.
void write_features(TextBuffer& out, const format::EventSet& events, const format::Features& features,
                    Names names);
// Our own sections: programs attached while recording, payloads described, files that travel in the capture.
void write_own_features(TextBuffer& out, const format::Features& features, Names names);

}  // namespace tacho::report
