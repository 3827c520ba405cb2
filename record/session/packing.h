// What is done to a finished capture: names go into it, so that it can be read anywhere, and what others
// should not see goes out of it. tacho-report does both, where it is installed beside this program. The two
// meet in the file alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "format/result.h"
#include "record/messages.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {

// A larger capture is not packed by itself: a packed one is written beside it.
inline constexpr std::uint64_t kMostPackedBytes = std::uint64_t{1} << 30;

struct Packing {
  std::string capture;
  std::uint64_t least_free = 0;  // bytes that the file system is to keep
  bool is_quiet = false;
  std::chrono::seconds longest{300};    // pack_symbols() alone
  const PinnedFiles* pinned = nullptr;  // what names come from besides; it must stay open meanwhile
};

// Packs with the rights that are left, as a process of lower priority, and says in a line what came of it. A
// signal that stops a recording ends it, and so does its time; a person at a terminal sees how long it takes.
// Whatever happens, the capture is whole: as it was, or packed.
void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages);

// In place of copies of stacks puts call chains into the capture, likewise. Where that cannot be, the copies
// stay, of which readers make the same.
void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages);

// --redact can be kept: refused before anything is recorded where the program is missing.
Result<> check_redaction();
// The same for `tacho redact`: `classes` as after --redact=, empty for all. An error says that the capture is
// as it was recorded.
Result<> redact_capture(const Packing& packing, const std::string& classes, const StopSignals& signals,
                        const Messages& messages);

}  // namespace tacho::record
