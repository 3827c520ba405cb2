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

// How much compressed records may inflate to.
struct InflateLimits {
  std::size_t record = std::size_t{16} << 20;  // bytes that one may hold
  // All together: some for every byte of the capture read so far, far more than recorders reach.
  bool total = true;
};

// Records that stand one behind another.
struct SampleRun {
  Bytes bytes;
  std::size_t count = 0;
  std::uint64_t offset = 0;  // of the first one in the capture
  bool is_plain = true;      // false: they were inflated, and all have that offset
};

class RecordStream {
 public:
  static constexpr std::uint64_t kUntilTheEnd = ByteWindow::kUntilTheEnd;

  // Where the records come from: `fd`'s position, which is `offset` in the file, and at most `size` bytes on.
  struct Source {
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t size = kUntilTheEnd;
    std::endian order = std::endian::native;
    bool grows = false;  // more may come, from behind `size` too
  };
  // The descriptor, `diagnostics` and `events` must outlive the stream; events may be added while it is read.
  // A compressed record that would inflate to more than `limits` allow is left out.
  RecordStream(const Source& source, InflateLimits limits, const EventSet& events, Diagnostics& diagnostics);

  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  // Sets `record` to the next one that is no COMPRESSED record. False at the end; of a source that grows, at
  // the end of what is there, and a record that is not whole yet waits for its rest.
  bool next(RecordView& record);
  SampleRun next_samples();  // CaptureReader::next_samples()
  // Of a source that grows: allows so many more bytes to be read; and marks the source as complete.
  void extend(std::uint64_t bytes) { window_.extend(bytes); }
  void end_growing() { window_.end_growing(); }
  bool grows() const { return window_.grows(); }
  Bytes next_payload();  // CaptureReader::next_payload()
  // The capture's early end is reported already: a last record that is cut by it is not reported again.
  void end_is_torn() { torn_end_is_reported_ = true; }
  // The block that holds the last record's bytes.
  const BlockRef& block() const { return given_; }
  // How many records of a compressed type were opened so far.
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
  enum class IfNone : std::uint8_t { Damage, CutShort };  // what it is when no sound record follows
  void search(IfNone if_none);
  void leave_out(std::uint64_t offset, std::uint64_t bytes, bool is_text, bool is_at_end);
  void cut_short(std::uint64_t offset);

  ByteWindow window_;               // the records that are not in compressed ones
  std::uint64_t payload_left_ = 0;  // bytes of a trace that stand before the next record
  std::endian order_;
  InflateLimits limits_;
  Diagnostics* diagnostics_;
  // Records out of a compressed one; null when none is open.
  std::shared_ptr<Block> inflated_;
  std::size_t inflated_at_ = 0;
  std::uint64_t inflated_offset_ = 0;
  // What all compressed records held so far, and the bytes that these take in the capture.
  std::uint64_t inflated_bytes_ = 0, inflated_records_ = 0, packed_bytes_ = 0;
  std::optional<RecordInflater> inflater_;
  // Records read but not given out, so that frames which stand alone are inflated meanwhile.
  struct Ahead {
    RecordView record;
    BlockRef block;
    InflateAhead::JobRef job;  // null: a plain record, or one to be inflated in its turn
  };
  std::deque<Ahead> ahead_;
  std::size_t jobs_ahead_ = 0;
  bool may_look_ahead_;  // not on a pipe: what came must go out before more is waited for
  std::optional<InflateAhead> pool_;
  std::uint64_t compressed_records_ = 0, compressed2_records_ = 0;
  bool stream_broken_ =
      false;  // a compressed record failed: until the next frame starts, nothing can be inflated
  bool torn_end_is_reported_ = false;
  RecordSearch search_;
  SearchArea outer_;  // the window
  BlockRef given_;    // the block of the record given last
};

}  // namespace tacho::format
