// A capture read and written again in another form: file or pipe, compressed or plain, whole or a part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/capture_reader.h"
#include "format/diagnostics.h"
#include "format/result.h"

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
};

// Streams the capture through. A reader of our pipe that goes away ends it quietly.
Result<> convert(const ConvertOptions& options, format::Diagnostics& diagnostics);

}  // namespace tacho::report
