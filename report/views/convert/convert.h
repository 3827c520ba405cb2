// A capture read and written again in another form: file or pipe, compressed or plain, whole or a part of it.
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

// What becomes of a capture's content on its way into a copy.

class CaptureChange {
 public:
  CaptureChange() = default;
  CaptureChange(const CaptureChange&) = delete;
  CaptureChange& operator=(const CaptureChange&) = delete;
  virtual ~CaptureChange() = default;

  // Once, before the first record: the events and the sections of the copy. Sections that are not taken apart
  // (Features::raw) are not among them.
  virtual Result<> change_head(format::EventSet& events, format::Features& features) = 0;
  // What a record of those events, in this machine's byte order, becomes: itself, or bytes in `scratch`;
  // nothing when it goes.
  virtual std::optional<format::RecordView> change(const format::RecordView& record,
                                                   format::ByteWriter& scratch) = 0;
};

// Of the symbols that were packed into a capture, the ones that the samples of a part of it need.

// Which samples of which file; empty: all.
struct CapturePart {
  std::string input;
  format::ReadOptions capture;
  symbolize::FileGate* gate = nullptr;  // may be null
  std::vector<std::uint32_t> pids;
  std::string times;  // as --time takes it
};

// Reads the capture once more, for what its samples of `events` hit, and takes everything else out of the
// pack, and copies of files, perf maps and jitdumps that they did not hit. Where stacks were copied nothing
// goes: which addresses stand in them only the files say.
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
  int level = 1;                    // zstd's, when packing is Compressed
  std::string times;                // as --time takes it; empty: all
  std::vector<std::string> events;  // names; empty: all
  std::vector<std::uint32_t>
      pids;              // whose symbols stay; `change` takes out what else is of others; empty: all
  bool unwinds = false;  // pieces of stack become call chains; records come in order of time then
  std::string symfs;     // for that: a folder in place of this machine's root; empty: this machine
  symbolize::FileGate* gate = nullptr;  // of the files that this reads; may be null
  // What becomes of its content, to outlive the conversion; null: nothing. Then sections and records that are
  // not understood do not come along.
  CaptureChange* change = nullptr;
  bool is_whole_or_nothing = false;  // a file is of no use before it is whole, and has no name until then
};

// Streams the capture through, and finishes what it wrote to. A reader of our pipe that goes away ends it
// quietly.
Result<> convert(const ConvertOptions& options, const CaptureOutput& output,
                 format::Diagnostics& diagnostics);

}  // namespace tacho::report
