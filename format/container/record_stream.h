// Splits a capture's bytes into records, inflates COMPRESSED records, and resynchronizes after damage
// (record_search.h).
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/diagnostics.h"
#include "format/codec/compression.h"
#include "format/container/byte_window.h"
#include "format/container/inflate_ahead.h"
#include "format/container/record_search.h"
#include "format/records/event_set.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::format {

// Limits of what compressed records may inflate to.
struct InflateLimits {
  std::size_t record = std::size_t{16} << 20;  // bytes of one
  // All together, for each byte of the capture read so far; recorders have far less.
  bool total = true;
};

// Adjacent samples.
struct SampleRun {
  Bytes bytes;
  std::size_t count = 0;
  std::uint64_t offset = 0;  // in the capture, of the first one
  bool is_plain = true;      // false: they are from the COMPRESSED record at that offset
};

class RecordStream {
 public:
  static constexpr std::uint64_t kUntilTheEnd = ByteWindow::kUntilTheEnd;

  // The input: at most `size` bytes from `fd`'s position, which is `offset` in the file.
  struct Source {
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t size = kUntilTheEnd;
    std::endian order = std::endian::native;
    bool grows = false;  // the file is still being written: more may come, also after `size`
  };
  // The descriptor, `diagnostics` and `events` must outlive the stream; events may be added meanwhile. A
  // compressed record that exceeds `limits` is ignored.
  RecordStream(const Source& source, InflateLimits limits, const EventSet& events, Diagnostics& diagnostics);

  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  // Sets `record` to the next one that is not COMPRESSED. False at the end; if the source grows, at the end
  // of the whole records written so far.
  bool next_record(RecordView& record);
  SampleRun next_samples();  // CaptureReader::next_samples()
  // For a source that grows: the source has so many more bytes; the source is complete.
  void extend(std::uint64_t bytes) { window_.extend(bytes); }
  void end_growing() { window_.end_growing(); }
  bool grows() const { return window_.grows(); }
  Bytes next_payload();  // CaptureReader::next_payload()
  // The truncation of the capture was reported: do not report the truncated last record.
  void end_is_torn() { torn_end_is_reported_ = true; }
  // The block that holds the last record's bytes.
  const BlockRef& block() const { return given_; }
  // How many records of a compressed type were inflated so far.
  std::uint64_t compressed_records(abi::RecordType type) const {
    return type == abi::kRecordCompressed2 ? compressed2_records_ : compressed_records_;
  }

 private:
  bool next_plain(RecordView& record);
  bool next_inflated(RecordView& record);
  bool next_outer(RecordView& record);
  std::optional<std::uint64_t> payload_behind(const RecordHeader& header);
  std::optional<std::size_t> damaged(const RecordHeader& header, std::uint64_t payload);
  bool skip_payload();
  void look_ahead();
  bool may_inflate(const RecordView& record);
  void inflate(const RecordView& record);
  Bytes rest_of_inflated() const;
  void open_inflated(std::shared_ptr<Block> block, std::uint64_t offset);
  enum class IfNone : std::uint8_t { Damage, CutShort };  // what to report if no sound record follows
  void search(IfNone if_none);
  void leave_out(std::uint64_t offset, std::uint64_t bytes, bool is_text, bool is_at_end);
  void cut_short(std::uint64_t offset);

  ByteWindow window_;               // the records of the file, COMPRESSED ones not inflated
  std::uint64_t payload_left_ = 0;  // bytes of an AUX trace before the next record
  std::endian order_;
  InflateLimits limits_;
  Diagnostics* diagnostics_;
  // The inflated contents of the current COMPRESSED record; null: none.
  std::shared_ptr<Block> inflated_;
  std::size_t inflated_at_ = 0;
  std::uint64_t inflated_offset_ = 0;
  // Totals of compressed records so far: their contents, and their bytes in the capture.
  std::uint64_t inflated_bytes_ = 0, inflated_records_ = 0, packed_bytes_ = 0;
  std::optional<RecordInflater> inflater_;
  // Records read ahead, so that workers inflate independent frames meanwhile.
  struct Ahead {
    RecordView record;
    BlockRef block;
    InflateAhead::JobRef job;  // null: a plain record, or a frame that depends on earlier ones
  };
  std::deque<Ahead> ahead_;
  std::size_t jobs_ahead_ = 0;
  bool may_look_ahead_;  // false for a pipe: its records must be returned before waiting for more
  std::optional<InflateAhead> pool_;
  std::uint64_t compressed_records_ = 0, compressed2_records_ = 0;
  // A compressed record failed: nothing can be inflated before the next frame starts.
  bool stream_broken_ = false;
  bool torn_end_is_reported_ = false;
  RecordSearch search_;
  SearchArea outer_;  // the window
  BlockRef given_;    // the block of the last record returned
};

}  // namespace tacho::format
