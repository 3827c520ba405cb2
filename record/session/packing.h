// Packs symbols into finished captures, unwinds stack copies, redacts. tacho-report does all three as a
// child, and the two share only the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/messages.h"
#include "record/output/file_series.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {

// Larger captures are not packed: the packed one is a second file beside it.
inline constexpr std::uint64_t kMostPackedBytes = std::uint64_t{1} << 30;

struct Packing {
  std::string capture;
  std::uint64_t least_free = 0;  // bytes that must stay free on the file system
  bool is_quiet = false;
  std::chrono::seconds longest{300};     // of pack_symbols() and unwind_copies()
  const PinnedFiles* pinned = nullptr;   // further files with symbols; must stay open meanwhile
  std::vector<std::string> silent = {};  // files that did not answer, which are not read again
};

// Packs symbols with the remaining rights, and prints a line about the result. A stop signal or its time
// limit ends it; a line says so when it takes longer than half a second. On a failure the capture is not
// changed.
void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages);

// Replaces stack copies by call chains, with the same limits. On a failure readers have to unwind the copies.
void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages);

// The same for the files of a recording, in this order, within one time limit. Says which files are not
// packed.
enum class Copies : std::uint8_t { None, Unwound };
void pack_files(const std::vector<std::string>& captures, Copies copies, const Packing& packing,
                const StopSignals& signals, const Messages& messages);

// Packs the finished files of a recording one after another while it goes on, at the lowest priority.
class FilePacker {
 public:
  // `series`: the files; `pinner`: may be null. Both must outlive this. `packing`: of any file.
  FilePacker(FileSeries& series, FilePinner* pinner, Packing packing, Copies copies, Messages messages);
  FilePacker(const FilePacker&) = delete;
  FilePacker& operator=(const FilePacker&) = delete;
  ~FilePacker();

  void add_capture(const std::string& capture);
  // Sees whether the child has ended, and starts the next one. Does not wait; call it often.
  void step();
  // Ends the child. Returns the files that are not packed yet.
  std::vector<std::string> stop();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

// Checks that tacho-report is installed, which --redact needs, before anything is recorded.
Result<> check_redaction();
// Runs `tacho redact`. `classes`: as in --redact=CLASSES, empty: all. After an error the capture is not
// redacted.
Result<> redact_capture(const Packing& packing, const std::string& classes, const StopSignals& signals,
                        const Messages& messages);

}  // namespace tacho::record
