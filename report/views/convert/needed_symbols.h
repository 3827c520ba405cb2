// Of the symbols that were packed into a capture, the ones that the samples of a part of it need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

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

}  // namespace tacho::report
