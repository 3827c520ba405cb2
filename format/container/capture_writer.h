// Writes a capture file that is readable at every moment (docs/capture-format.md, "Readable after any
// death").
//
// Header, ids, attrs and the feature sections known at the start are written before the data. After each
// round the data size in the header and the table of sections behind the data are updated, so tacho and perf
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
  // A capture that is passed on: attrs keep a size above perf's, and EVENT_DESC is written only when
  // `features` has it.
  bool as_given = false;
  // The data section is copied from another capture with copy_data(): COMPRESSED stays as `features` has it,
  // and write_records() must not be called.
  bool copies_data = false;
};

// The compressor that the options ask for, or null; sets or removes the feature COMPRESSED accordingly. For
// both writers.
Result<std::optional<RecordCompressor>> prepare_compression(const WriteOptions& options, Features& features);
// Bytes that are kept free for the end of a capture of bounded size: a record of lost samples for each id of
// an event, marks, and sections that are known late.
std::uint64_t room_for_end(const EventSet& events);
// Bytes of every attr, so that none loses a field.
std::uint32_t common_attr_size(const EventSet& events, const WriteOptions& options);

class CaptureWriter {
 public:
  // Creates the file and writes header, events and `features`. Sets EVENT_DESC (but see as_given) and
  // COMPRESSED by itself.
  static Result<CaptureWriter> create(const std::string& path, const EventSet& events, Features features,
                                      WriteOptions options = {});

  // The same into a file that is open for reading and writing, and empty.
  static Result<CaptureWriter> create(Fd file, const EventSet& events, Features features,
                                      WriteOptions options = {});

  // The data section of another capture, or a part of it, as it stands in `from`.
  Result<> copy_data(int from, std::uint64_t offset, std::uint64_t size);
  // Whole records that stay plain (synthesized ones, marks).
  Result<> write_plain(Bytes records);
  // Whole records from a ring: compressed when the options say so.
  Result<> write_records(Bytes records);
  // COMPRESSED records made elsewhere; `inflated`: bytes of the records in them.
  Result<> write_packed(Bytes packed, std::uint64_t inflated);
  // The same within a file of `most_bytes`, the end included. False: there is no room, and nothing was
  // written.
  Result<bool> write_records_within(Bytes records, std::uint64_t most_bytes);
  // Bytes to keep free for the end of a recording: marks, losses and late sections. close() may exceed them.
  std::uint64_t closing_room() const { return closing_room_; }
  // Ends a round: writes a FINISHED_ROUND record, then updates the header.
  Result<> finish_round();
  // Adds or replaces sections known only at the end, closes the file for good and makes it durable.
  Result<> close(const Features& late);
  // After a failed write: cuts the file back to the last whole round and closes it there.
  Result<> close_after_failure();

  std::uint64_t next_offset() const { return end_; }  // where in the file the next record goes
  std::uint64_t data_bytes() const;                   // of the data section so far, as stored
  std::uint64_t file_bytes() const;

 private:
  CaptureWriter(Fd file, std::optional<RecordCompressor> compressor)
      : file_(std::move(file)), compressor_(std::move(compressor)) {}
  Result<> write_head(const EventSet& events, Features features, const WriteOptions& options);
  Result<> append(Bytes bytes);
  void count_packed(std::uint64_t packed, std::uint64_t inflated);
  // Whether a section is listed in the early table only.
  bool stands_early(std::uint32_t feature) const;
  std::uint64_t table_size() const;  // bytes of the table behind the data
  Result<> add_late(const Features& late);
  Result<> make_true(std::uint64_t data_end);
  Result<> write_early_entries();
  Result<> seal();
  Result<> write_ratio();

  Fd file_;
  std::optional<RecordCompressor> compressor_;
  std::vector<std::byte> packed_;         // scratch of write_records
  std::vector<FeatureSection> sections_;  // ascending by feature
  std::vector<FeatureSection> early_;     // the entries of the early table, which stands at early_offset_
  std::uint64_t early_offset_ = 0;
  FileSection attrs_;
  std::uint64_t attr_size_ = 0;  // bytes of an entry of the attr table
  std::uint64_t data_offset_ = 0;
  std::uint64_t end_ = 0;           // where the next record goes
  std::uint64_t sound_end_ = 0;     // end of the last whole round
  std::uint64_t file_end_ = 0;      // once closed
  std::uint64_t state_offset_ = 0;  // of the state word (FileHead: EarlyTable)
  std::uint64_t closing_room_ = 0;
  std::uint64_t inflated_ = 0, packed_bytes_ = 0;  // of COMPRESSED records, and of what is in them
  Result<Bytes> packed(Bytes records);
};

}  // namespace tacho::format
