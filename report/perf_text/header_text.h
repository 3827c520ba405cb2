// What a capture's header says, as lines of text: perf's own, and tacho's about its own sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/container/capture_reader.h"
#include "format/container/environment.h"
#include "report/output/text_output.h"

namespace tacho::report {

// The long header sections about the recording host, as perf shows them with -I.

std::string cpu_topology_text(const format::Environment& environment, Names names);
std::string numa_text(const format::Environment& environment, Names names);
std::string cache_text(const format::Environment& environment, Names names);
std::string memory_text(const format::Environment& environment);

// Who the processes were that ran when a recording began, as lines of a capture's header.

// `table`: the text of attachment "processes" (docs/capture-format.md), which may be anything: lines that are
// no processes are passed over. Processes that have other numbers inside of their namespaces get a line each,
// of very many the first; the rest are counted.
void write_processes(TextBuffer& out, std::string_view table, Names names);

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
