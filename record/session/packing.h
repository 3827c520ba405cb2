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
  std::uint64_t least_free = 0;  // bytes that the file system is to keep
  bool is_quiet = false;
  std::chrono::seconds longest{300};    // pack_symbols() alone
  const PinnedFiles* pinned = nullptr;  // further files with symbols; must stay open meanwhile
};

// Packs with the remaining rights, as a process of lower priority, and prints a line about the result. A
// signal that stops a recording ends it, and so does its time; on a terminal a line shows how long it
// takes. On any failure the capture stays as it was.
void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages);

// Replaces stack copies by call chains, likewise. On failure the copies stay, and readers unwind them.
void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages);

// --redact can be kept: refused before anything is recorded where the program is missing.
Result<> check_redaction();
// The same for `tacho redact`: `classes` as after --redact=, empty for all. An error says that the capture is
// as it was recorded.
Result<> redact_capture(const Packing& packing, const std::string& classes, const StopSignals& signals,
                        const Messages& messages);

}  // namespace tacho::record
