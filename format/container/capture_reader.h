// Reads the records of a capture in file order.
//
//   auto reader = CaptureReader::open("perf.data", diagnostics);
//   while (auto record = reader->next_record()) ...
//
// Reads files, directories (perf record --threads) and pipes ("-" is standard input), of either byte order.
// Of a truncated file it returns all records before the cut. COMPRESSED records are inflated: next_record()
// returns the records in them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/container/growing_file.h"
#include "format/container/record_stream.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"

namespace tacho::format {

struct ReadOptions {
  InflateLimits inflate;
  // For copying a capture: keeps the bytes of every header section too, in this machine's byte order
  // (Features::raw), and next_record() gives records of unknown types as well.
  bool keep_all = false;
  // Follows a capture that is still being written until its recorder closes it. Null: reads what is there
  // now. Must outlive the reader.
  Following* following = nullptr;
};

// The offsets and sizes in the file, for `tacho header`.
struct CaptureLayout {
  bool is_pipe = false;
  bool is_closed = true;          // its recorder finished it
  std::uint64_t file_size = 0;    // bytes; 0 for a pipe
  std::uint64_t data_offset = 0;  // bytes
  std::uint64_t data_size = 0;    // bytes, as the header says
  std::uint64_t features_offset = 0;
  std::int64_t modified = 0;  // seconds since 1970: the file's mtime
  std::endian order = std::endian::native;
};

// The header of a capture.
struct CaptureHeader {
  CaptureLayout layout;
  EventSet events;
  Features features;
};

class CaptureReader {
 public:
  // `diagnostics` must outlive the reader.
  static Result<CaptureReader> open(const std::string& path, Diagnostics& diagnostics,
                                    ReadOptions options = {});
  CaptureReader(CaptureReader&&) noexcept;
  CaptureReader& operator=(CaptureReader&&) noexcept;
  ~CaptureReader();

  // In a pipe, events and features grow as records are read: they belong to the thread that calls
  // next_record().
  const EventSet& events() const;
  const Features& features() const;
  // The feature sections, to write another header with; they can be as large as the capture. For a file they
  // are moved out of the reader; for a pipe, whose records add to them, this is a copy.
  Features take_features();
  const CaptureLayout& layout() const;
  // The header of a file. It does not change after open(), so any thread may read it while another calls
  // next_record(). Null for a pipe.
  std::shared_ptr<const CaptureHeader> fixed_header() const;

  // The next record, or nothing at the end. Its bytes stay valid while a reference to block() is kept, and
  // without one until the next call.
  std::optional<RecordView> next_record();
  // A fast path: the next samples, if they are adjacent and ordinary. They are consumed together, and their
  // bytes are in block(). Empty: call next_record() instead.
  SampleRun next_samples();
  // For a capture that is followed, after next_record() returned nothing: waits for more, at most 0.1 s.
  // False: the capture has ended (next_record() may return a last record); Following::end says why.
  bool follows() const;
  bool shows_at_once() const;
  bool wait_for_more();
  const BlockRef& block() const;
  // After an AUXTRACE record: the next piece of the trace after it, valid until the next call; empty at the
  // trace's end. next_record() skips the rest of a trace.
  Bytes next_payload();
  // How many COMPRESSED and COMPRESSED2 records were inflated so far; next_record() does not give them.
  std::uint64_t compressed_records(abi::RecordType type) const;

 private:
  struct State;
  explicit CaptureReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::format
