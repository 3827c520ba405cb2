// What a capture's header says, as lines of text: perf's own, and tacho's about its own sections.
#pragma once

#include <cstdint>

#include "format/container/capture_reader.h"
#include "report/output/printable.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Full: with the long sections about the host (topology, caches, memory), as perf's -I.
enum class HeaderDetail : std::uint8_t { Brief, Full };

// perf's block: "# ========", layout, features, what is missing, "# ========". A pipe's features are not in
// it: they come with the records.
void write_header(TextBuffer& out, const format::CaptureLayout& layout, const format::EventSet& events,
                  const format::Features& features, Names names, HeaderDetail detail = HeaderDetail::Brief);
// The lines about features alone.
void write_features(TextBuffer& out, const format::EventSet& events, const format::Features& features,
                    Names names, HeaderDetail detail = HeaderDetail::Brief);
// Our own sections: programs attached while recording, payloads described, files that travel in the capture.
void write_own_features(TextBuffer& out, const format::Features& features, Names names);

}  // namespace tacho::report
