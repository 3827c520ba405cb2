// Pinned files: kept open from their first mapping on, for symbols after the recording, when they may not
// exist any more: deleted files, files of containers, outputs of compilers and tests, perf maps and jitdumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"
#include "format/records/event_attr.h"
#include "record/stacks/mmap_events.h"

namespace tacho::record {

// Limits on this process and on the disk: a deleted file keeps its blocks while it is open.
inline constexpr std::size_t kMostPinnedFiles = 256;
inline constexpr std::uint64_t kMostPinnedBytes = std::uint64_t{4} << 30;

struct PinnedFile {
  enum class Kind : std::uint8_t {
    Binary,   // mapped code
    PerfMap,  // names of code that the process made at run time
  } kind = Kind::Binary;
  std::uint32_t process = 0;  // that had it mapped, or wrote it
  format::BuildId build_id;   // empty: it has none
  std::string name;           // of a binary, as in the mapping record
  format::Fd file;
  std::int64_t start = 0;  // of a map's process, ns since the host's
};

struct PinnedFiles {
  std::vector<PinnedFile> files;
  std::uint64_t refused = 0;  // for which there was no room
  std::string failure;        // why none is held; empty when it could be tried
};

// Opens them on a thread of its own: a container's file may be on a file system that does not answer.
class FilePinner {
 public:
  FilePinner();
  FilePinner(const FilePinner&) = delete;
  FilePinner& operator=(const FilePinner&) = delete;
  ~FilePinner();

  // `attr`: of the event that carries mappings. `processes` run already.
  Result<> start(const format::EventAttr& attr, std::vector<int> processes);
  // Whole records, of which those about mappings are noted; the thread does the rest.
  void look(format::Bytes records);
  // Ends the thread. One that hangs in a file system is abandoned after 2 s, with what it has by then.
  PinnedFiles take();

 private:
  struct State;
  class Work;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  format::EventAttr attr_;
  std::vector<MmapEvent> events_;
  bool is_running_ = false;
};

}  // namespace tacho::record
