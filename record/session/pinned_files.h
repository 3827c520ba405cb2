// Pinned files: kept open from their first mapping on, since they may not exist any more when their symbols
// are packed: deleted files, files of containers, outputs of compilers and tests, perf maps and jitdumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"
#include "format/records/event_attr.h"
#include "record/host/foreign_reader.h"
#include "record/stacks/mmap_events.h"

namespace tacho::record {

// Limits: each file takes a descriptor, and a deleted one keeps its disk blocks while it is open.
inline constexpr std::size_t kMostPinnedFiles = 256;
inline constexpr std::uint64_t kMostPinnedBytes = std::uint64_t{4} << 30;

struct PinnedFile {
  enum class Kind : std::uint8_t {
    Binary,   // mapped code
    PerfMap,  // names of code that the process made at run time
  } kind = Kind::Binary;
  std::uint32_t process = 0;  // the process that mapped it, or wrote the perf map
  format::BuildId build_id;   // empty: it has none
  std::string name;           // of a binary, as in the mapping record
  format::Fd file;            // O_PATH: closing it never waits for a file system
  std::int64_t start = 0;     // of a perf map: start of its process, ns since boot
};

struct PinnedFiles {
  std::vector<PinnedFile> files;
  std::uint64_t refused = 0;  // number of files beyond the limits
  std::string failure;        // why no file is pinned; empty: no failure
};

// Pinned files as tacho-report takes them: words for its command line, and descriptors that it must inherit.
struct PinnedArguments {
  std::vector<std::string> words;
  std::vector<int> inherited;
  format::Fd listing;  // the last one of them
};
// No words if there are no files.
Result<PinnedArguments> arguments_for(const PinnedFiles& pinned);

// Pins files on a thread of its own, since the file system of a container may be slow.
class FilePinner {
 public:
  explicit FilePinner(std::shared_ptr<ForeignReader> reader);
  FilePinner(const FilePinner&) = delete;
  FilePinner& operator=(const FilePinner&) = delete;
  ~FilePinner();

  // `attr`: of the event with mmap records. `processes`: the running ones.
  Result<> start(const format::EventAttr& attr, std::vector<int> processes);
  // Queues the mappings in these whole records for the thread.
  void pin_mapped(format::Bytes records);
  // Calls `what` with the files that are pinned now; pinning waits meanwhile.
  void use(const std::function<void(const PinnedFiles&)>& what);
  // Ends the thread and returns its files. A thread that does not end is abandoned after 2 s.
  PinnedFiles take_pinned();

 private:
  struct State;
  class Work;
  static void pin_files(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  format::EventAttr attr_;
  std::vector<MmapEvent> events_;
  bool is_running_ = false;
};

}  // namespace tacho::record
