// Writes a capture in perf's pipe format: feature sections come first, as records, and nothing is changed
// after it was written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/codec/compression.h"
#include "format/container/capture_writer.h"
#include "format/container/features.h"
#include "format/records/event_set.h"

namespace tacho::format {

// Whether names of events are written as EVENT_UPDATE records, where perf reads them in pipes.
enum class PipeNames : std::uint8_t { Write, LeaveOut };

class PipeWriter {
 public:
  // Writes all bytes, or returns an error.
  using Write = std::function<Result<>(Bytes)>;

  // Writes the header to `out`: events, `features`, tracepoint formats, build ids. An error if an event has
  // more ids than one record can hold.
  static Result<PipeWriter> create(Fd out, const EventSet& events, Features features, WriteOptions options,
                                   PipeNames names = PipeNames::Write);
  // The same, with a function that writes the bytes.
  static Result<PipeWriter> create(Write write, const EventSet& events, Features features,
                                   WriteOptions options, PipeNames names = PipeNames::Write);

  // Whole records that are not compressed.
  Result<> write_plain(Bytes records);
  // Whole records: compressed when the options say so.
  Result<> write_records(Bytes records);
  // write_records() up to `most_bytes` in all, closing records included. False: no room, and nothing was
  // written.
  Result<bool> write_records_within(Bytes records, std::uint64_t most_bytes);
  std::uint64_t closing_room() const { return closing_room_; }
  Result<> finish_round();
  // A feature section that is known only at the end.
  Result<> write_section(std::uint32_t feature, Bytes section);
  // Bytes written so far.
  std::uint64_t bytes() const { return written_; }

 private:
  PipeWriter(Fd out, Write write) : out_(std::move(out)), write_(std::move(write)) {}
  static Result<PipeWriter> begin_stream(PipeWriter writer, const EventSet& events, Features features,
                                         const WriteOptions& options, PipeNames names);
  Result<> write_head(const EventSet& events, const Features& features, std::uint32_t attr_size,
                      PipeNames names);

  Fd out_;
  Write write_;  // used in place of out_ if not empty
  std::optional<RecordCompressor> compressor_;
  std::vector<std::byte> packed_;  // scratch of write_records
  std::uint64_t written_ = 0, closing_room_ = 0;
};

}  // namespace tacho::format
