// Rewrites a capture in another form (file or pipe, compressed or plain), as a whole or in part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "report/views/convert/capture_target.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

// A change of a capture's content while it is copied, as redact makes it.

class CaptureChange {
 public:
  CaptureChange() = default;
  CaptureChange(const CaptureChange&) = delete;
  CaptureChange& operator=(const CaptureChange&) = delete;
  virtual ~CaptureChange() = default;

  // Called once before the first record: changes events and feature sections of the copy. Sections that are
  // not parsed (Features::raw) are not copied.
  virtual Result<> change_head(format::EventSet& events, format::Features& features) = 0;
  // Called for each record, in this machine's byte order. Returns the record itself, a new one in `scratch`,
  // or nullopt to drop it.
  virtual std::optional<format::RecordView> change(const format::RecordView& record,
                                                   format::ByteWriter& scratch) = 0;
};

// A part of a capture: samples of some processes and times; empty: all.
struct CapturePart {
  std::string input;
  format::ReadOptions capture;
  symbolize::FileGate* gate = nullptr;  // may be null
  std::vector<std::uint32_t> pids;
  std::string times;  // as --time takes it
};

// Reads the part's samples of `events` and drops from `features` what they did not hit: packed symbols,
// copies of files, perf maps and jitdumps. Drops nothing if stacks were copied, since their addresses are
// known only after unwinding.
Result<> keep_needed_symbols(const CapturePart& part, const format::EventSet& events,
                             format::Features& features);

enum class CaptureForm : std::uint8_t { File, Pipe };
enum class Packing : std::uint8_t { AsItIs, Plain, Compressed };

struct ConvertOptions {
  std::string input = "perf.data";
  format::ReadOptions capture;
  std::string output;  // "-": standard output
  CaptureForm form = CaptureForm::File;
  Packing packing = Packing::AsItIs;
  int level = 1;                    // of zstd, with Packing::Compressed
  std::string times;                // the value of --time; empty: all
  std::vector<std::string> events;  // names; empty: all
  std::vector<std::uint32_t> pids;  // keep only symbols of these (`change` drops their records); empty: all
  bool unwinds = false;             // replace copied stacks by call chains; records come in order of time
  std::string symfs;                // root of the files for unwinding; empty: this machine's
  symbolize::FileGate* gate = nullptr;  // access to files of modules; may be null
  // Changes the content and drops sections and records that are not parsed; null: copy everything. Must
  // outlive the conversion.
  CaptureChange* change = nullptr;
  bool is_whole_or_nothing = false;  // name the file only when it is complete
};

// Copies the capture and finishes the output. When the reader of an output pipe goes away, that is no error.
Result<> convert(const ConvertOptions& options, const CaptureOutput& output,
                 format::Diagnostics& diagnostics);

}  // namespace tacho::report
