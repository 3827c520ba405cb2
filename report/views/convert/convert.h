// A capture read and written again in another form: file or pipe, compressed or plain, whole or a part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/capture_reader.h"
#include "format/diagnostics.h"
#include "format/result.h"
#include "report/output/whole_capture.h"
#include "report/views/convert/capture_change.h"

namespace tacho::report {

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
  bool unwinds = false;             // pieces of stack become call chains; records come in order of time then
  std::string symfs;                // for that: a folder in place of this machine's root; empty: this machine
  // What becomes of its content, to outlive the conversion; null: nothing. Then sections and records that are
  // not understood do not come along.
  CaptureChange* change = nullptr;
  bool is_whole_or_nothing = false;      // a file takes its name when it is whole, and not before
  bool replaces_input = false;           // and then it takes the input's, with its owner and mode
  std::optional<FileState> input_state;  // nothing is replaced when the input has another one by then
};

// Streams the capture through. A reader of our pipe that goes away ends it quietly.
Result<> convert(const ConvertOptions& options, format::Diagnostics& diagnostics);

}  // namespace tacho::report
