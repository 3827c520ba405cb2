// After the recording: packs symbols into the capture, unwinds stack copies, redacts. tacho-report does all
// three as a child, and the two share only the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "format/base/result.h"
#include "record/messages.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {

// Larger captures are not packed: the packed one is a second file beside it.
inline constexpr std::uint64_t kMostPackedBytes = std::uint64_t{1} << 30;

struct Packing {
  std::string capture;
  std::uint64_t least_free = 0;  // bytes that must stay free on the file system
  bool is_quiet = false;
  std::chrono::seconds longest{300};    // of pack_symbols() and unwind_copies()
  const PinnedFiles* pinned = nullptr;  // further files with symbols; must stay open meanwhile
};

// Packs symbols with the remaining rights and at lower priority, and prints a line about the result. A stop
// signal or its time limit ends it; a terminal shows a progress line. On a failure the capture is not
// changed.
void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages);

// Replaces stack copies by call chains, with the same limits. On a failure readers have to unwind the copies.
void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages);

// Checks that tacho-report is installed, which --redact needs, before anything is recorded.
Result<> check_redaction();
// Runs `tacho redact`. `classes`: as in --redact=CLASSES, empty: all. After an error the capture is not
// redacted.
Result<> redact_capture(const Packing& packing, const std::string& classes, const StopSignals& signals,
                        const Messages& messages);

}  // namespace tacho::record
