// perf report --stats: counts of records by type and of samples by event.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/container/capture_reader.h"
#include "report/output/text_output.h"

namespace tacho::report {

class RecordCounts {
 public:
  // Records that belong to no known event go to `diagnostics`. Both must outlive this.
  RecordCounts(format::CaptureReader& reader, format::Diagnostics& diagnostics)
      : reader_(reader), diagnostics_(diagnostics) {}

  void add(const format::RecordView& record);
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
