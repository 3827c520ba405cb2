// Writes a capture file that is readable at every moment (docs/capture-format.md, "Readable after any
// death").
//
// Header, ids, attrs and the feature sections known at the start are written before the data. After each
// round the data size in the header and the table of sections after the data are updated, so tacho and perf
// can read the file of a killed writer up to its last round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/codec/compression.h"
#include "format/container/features.h"
#include "format/container/file_head.h"
#include "format/records/event_set.h"

namespace tacho::format {

struct WriteOptions {
  std::optional<int> compression_level = 1;  // zstd level; nothing: plain
  // For a copy of a capture: attrs that are larger than perf's keep their size, and EVENT_DESC is written
  // only if `features` has it.
  bool as_given = false;
  // The data section is copied from another capture with copy_data(): COMPRESSED stays as `features` has it,
  // and write_records() must not be called.
  bool copies_data = false;
};

// For both writers: makes the compressor for the options, or nothing, and sets or removes the feature
// COMPRESSED accordingly.
Result<std::optional<RecordCompressor>> prepare_compression(const WriteOptions& options, Features& features);
// The records as they are written: compressed into `scratch`; without a compressor, unchanged.
Result<Bytes> packed_records(std::optional<RecordCompressor>& compressor, Bytes records,
                             std::vector<std::byte>& scratch);
// Bytes to keep free for the end of a capture of bounded size: a LOST_SAMPLES record for each event id,
// FINISHED_ROUND records, and the feature sections that are written last.
std::uint64_t room_for_end(const EventSet& events);
// The size of all attrs in the file: that of the largest, so that no attr loses a field.
std::uint32_t common_attr_size(const EventSet& events, const WriteOptions& options);

class CaptureWriter {
 public:
  // Creates the file and writes header, events and `features`. Sets EVENT_DESC (but see as_given) and
  // COMPRESSED by itself.
  static Result<CaptureWriter> create(const std::string& path, const EventSet& events, Features features,
                                      WriteOptions options = {});

  // The same with an empty file that is open for reading and writing.
  static Result<CaptureWriter> create(Fd file, const EventSet& events, Features features,
                                      WriteOptions options = {});

  // Copies the data section of another capture, or a part of it, from the file `from`.
  Result<> copy_data(int from, std::uint64_t offset, std::uint64_t size);
  // Whole records that are not compressed (synthesized ones, FINISHED_ROUND).
  Result<> write_plain(Bytes records);
  // Whole records from a ring: compressed when the options say so.
  Result<> write_records(Bytes records);
  // write_records() for a file of at most `most_bytes`, its closing sections included. False: there is no
  // room, and nothing was written.
  Result<bool> write_records_within(Bytes records, std::uint64_t most_bytes);
  // room_for_end() of this capture. close_file() may need more.
  std::uint64_t closing_room() const { return closing_room_; }
  // Ends a round: writes a FINISHED_ROUND record, then updates the header.
  Result<> finish_round();
  // Adds or replaces sections known only at the end, closes the file for good and makes it durable.
  Result<> close_file(const Features& late);
  // After a failed write: cuts the file back to the last whole round and closes it there.
  Result<> close_after_failure();

  std::uint64_t next_offset() const { return end_; }  // where in the file the next record goes
  std::uint64_t file_bytes() const;

 private:
  CaptureWriter(Fd file, std::optional<RecordCompressor> compressor)
      : file_(std::move(file)), compressor_(std::move(compressor)) {}
  Result<> write_head(const EventSet& events, Features features, const WriteOptions& options);
  Result<> append(Bytes bytes);
  // `packed`: as they are written; `inflated`: bytes of the records in them.
  Result<> append_records(Bytes packed, std::uint64_t inflated);
  // Whether a section is listed in the early table only.
  bool is_early(std::uint32_t feature) const;
  std::uint64_t table_size() const;  // bytes of the table after the data
  Result<> add_late(const Features& late);
  Result<> update_header(std::uint64_t data_end);
  Result<> write_early_entries();
  Result<> seal();
  Result<> write_ratio();

  Fd file_;
  std::optional<RecordCompressor> compressor_;
  std::vector<std::byte> packed_;         // scratch of write_records
  std::vector<FeatureSection> sections_;  // ascending by feature
  std::vector<FeatureSection> early_;     // the entries of the early table, which is at early_offset_
  std::uint64_t early_offset_ = 0;
  FileSection attrs_;
  std::uint64_t attr_size_ = 0;  // bytes of an entry of the attr table
  std::uint64_t data_offset_ = 0;
  std::uint64_t end_ = 0;           // where the next record goes
  std::uint64_t sound_end_ = 0;     // end of the last whole round
  std::uint64_t file_end_ = 0;      // once closed
  std::uint64_t state_offset_ = 0;  // of the state word (FileHead: EarlyTable)
  std::uint64_t closing_room_ = 0;
  std::uint64_t inflated_ = 0, packed_bytes_ = 0;  // bytes of records inflated, and compressed
};

}  // namespace tacho::format
