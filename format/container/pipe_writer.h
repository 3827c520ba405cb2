// Writes a capture in perf's pipe format: header sections come first, as records, and nothing that was
// written is changed later.
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

// Whether each event's name is written as an EVENT_UPDATE record, where perf looks for it in pipes.
enum class PipeNames : std::uint8_t { Write, LeaveOut };

class PipeWriter {
 public:
  // Writes all of the bytes, or returns why not.
  using Write = std::function<Result<>(Bytes)>;

  // Writes the head to `out`: events, `features`, tracepoint formats, build ids. An error when an event has
  // more ids than one record holds.
  static Result<PipeWriter> create(Fd out, const EventSet& events, Features features, WriteOptions options,
                                   PipeNames names = PipeNames::Write);
  // The same, with the bytes given to a function.
  static Result<PipeWriter> create(Write write, const EventSet& events, Features features,
                                   WriteOptions options, PipeNames names = PipeNames::Write);

  // Whole records that stay plain.
  Result<> write_plain(Bytes records);
  // Whole records: compressed when the options say so.
  Result<> write_records(Bytes records);
  // The same within `most_bytes` in all, the end included. False: there is no room, and nothing was written.
  Result<bool> write_records_within(Bytes records, std::uint64_t most_bytes);
  std::uint64_t closing_room() const { return closing_room_; }
  Result<> finish_round();
  // A header section that became known late.
  Result<> write_section(std::uint32_t feature, Bytes section);
  // Written so far.
  std::uint64_t bytes() const { return written_; }

 private:
  PipeWriter(Fd out, Write write) : out_(std::move(out)), write_(std::move(write)) {}
  Result<> begin(const EventSet& events, Features features, const WriteOptions& options, PipeNames names);
  Result<> write_head(const EventSet& events, const Features& features, std::uint32_t attr_size,
                      PipeNames names);

  Fd out_;
  Write write_;  // in place of it; may be empty
  std::optional<RecordCompressor> compressor_;
  std::vector<std::byte> packed_;  // scratch of write_records
  std::uint64_t written_ = 0, closing_room_ = 0;
};

}  // namespace tacho::format
