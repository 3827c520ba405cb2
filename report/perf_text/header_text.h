// The header of a capture as lines of text: perf's lines, and tacho's own feature sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/container/capture_reader.h"
#include "format/container/environment.h"
#include "report/output/text_output.h"

namespace tacho::report {

// The long feature sections about the recording host, which perf shows with -I.

std::string cpu_topology_text(const format::Environment& environment, Names names);
std::string numa_text(const format::Environment& environment, Names names);
std::string cache_text(const format::Environment& environment, Names names);
std::string memory_text(const format::Environment& environment);

// The processes that ran when the recording began. `table` is the text of the attachment "processes"
// (docs/capture-format.md); invalid lines are skipped. Processes with other pids inside a PID namespace get a
// line each, up to a limit; the others are counted.
void write_processes(TextBuffer& out, std::string_view table, Names names);

// Full: with the long sections about the host (topology, caches, memory), as perf -I.
enum class HeaderDetail : std::uint8_t { Brief, Full };

// perf's block: "# ========", layout, features, missing features, "# ========". Without the features of a
// pipe, which are records.
void write_header(TextBuffer& out, const format::CaptureLayout& layout, const format::EventSet& events,
                  const format::Features& features, Names names, HeaderDetail detail = HeaderDetail::Brief);
// Only the lines about features.
void write_features(TextBuffer& out, const format::EventSet& events, const format::Features& features,
                    Names names, HeaderDetail detail = HeaderDetail::Brief);
// tacho's own feature sections: attached BPF programs, descriptions of payloads, attached files.
void write_own_features(TextBuffer& out, const format::Features& features, Names names);

}  // namespace tacho::report
