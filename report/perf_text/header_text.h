// The header of a capture as lines of text: perf's lines, and tacho's own feature sections.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
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

// perf report --stats: counts of records by type and of samples by event.
class RecordCounts {
 public:
  // Records that belong to no known event go to `diagnostics`. Both must outlive this.
  RecordCounts(format::CaptureReader& reader, format::Diagnostics& diagnostics)
      : reader_(reader), diagnostics_(diagnostics) {}

  void add_record(const format::RecordView& record);
  // Whether to print the losses of each event: perf does so with --stats, but not after its dump of records.
  enum class Losses : std::uint8_t { Shown, Hidden };
  void write(TextBuffer& out, Names names, Losses losses);

 private:
  struct EventCounts {
    std::uint64_t samples = 0, lost = 0;
  };
  void add_sample(const format::RecordView& record, std::size_t event, const format::EventAttr& attr);
  void add_lost(const format::RecordView& record, std::size_t event, const format::EventAttr& attr);

  format::CaptureReader& reader_;
  format::Diagnostics& diagnostics_;
  std::map<std::uint32_t, std::uint64_t> by_type_;
  std::vector<EventCounts> by_event_;
  // The last value of each counter, by its id.
  std::unordered_map<std::uint64_t, std::uint64_t, format::SeededHash> last_value_;
};

// Reads all records of `reader`.
void write_stats(TextBuffer& out, format::CaptureReader& reader, format::Diagnostics& diagnostics,
                 Names names);

}  // namespace tacho::report
