// Mapped files: their identity, where to open them, and their unwind tables. And the allocator of ranges of
// ids.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"
#include "format/records/record.h"
#include "record/host/foreign_file.h"
#include "unwind/row_table.h"

namespace tacho::record {

// Allocates ranges of ids 0, 1, 2, ... Freed ranges are quarantined until no BPF walk can still use them.
class IdRangeAllocator {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuarantine{500};

  explicit IdRangeAllocator(std::uint32_t count) { grow(count); }

  // The first of `count` numbers in a row; nothing when there is no such run.
  std::optional<std::uint32_t> take(std::uint32_t count, Clock::time_point now);
  void give_back(std::uint32_t first, std::uint32_t count, Clock::time_point now);
  // Whether there is such a run, and so many numbers anywhere, once all that rests has rested.
  bool will_have(std::uint32_t count, std::uint32_t anywhere = 0) const;
  // More numbers behind the last one.
  void grow(std::uint32_t more);

  std::uint32_t size() const { return size_; }
  std::uint32_t taken() const { return taken_; }  // the resting ones included

 private:
  struct Quarantined {
    Clock::time_point since;
    std::uint32_t first, count;
  };
  std::uint32_t free_later() const;
  void release_quarantined(Clock::time_point now);
  void add_free(std::uint32_t first, std::uint32_t count);

  std::map<std::uint32_t, std::uint32_t> free_;  // first to count; no two touch
  std::deque<Quarantined> quarantine_;           // oldest first
  std::uint32_t size_ = 0, taken_ = 0;
};

// Mapped files: their identity, where to find them, and their tables.

// A mapped file: its identity, and where to find it.
struct MappedFile {
  format::BuildId build_id;
  std::uint32_t major = 0, minor = 0;  // with the inode: when the kernel reported no build id
  std::uint64_t inode = 0;
  // From the BPF program's question; a size of 0: not known. An inode of a removed file is used again.
  std::uint64_t size = 0;
  std::uint64_t changed = 0;  // ns since 1970; 0: not known
  std::uint32_t generation = 0;
  std::string name;           // as the kernel calls it
  std::uint32_t process = 0;  // one that has it mapped, there:
  std::uint64_t start = 0, end = 0;
};

MappedFile file_of(const format::MmapRecord& mapping);

inline constexpr int kNotOpened = ENOENT;  // an error's code: the file is not there, or is another one

// Key by which two mappings are of the same file.
std::string identity(const MappedFile& file);
// By its name: surely no binary.
bool is_code_of_no_file(const std::string& name);

// Where the file may be found: the mapping itself, which is right also for deleted files; its path as the
// process sees it; the path here, unless the process is known to see other files.
std::vector<ForeignPath> paths_of(const MappedFile& file, const std::string& proc = "/proc");
// What hangs when the file does (TimedFileReader::place_of).
std::string place_of(const MappedFile& file, const std::string& proc = "/proc");
// The first of its paths that leads to it.
Result<format::Fd> open_binary(const MappedFile& file, const std::string& proc = "/proc");
// Sets the identity of the file: its build id, size, time and generation.
void know(MappedFile& file, const format::Fd& opened);
// Empty when it has none.
format::BuildId build_id_of(const format::Fd& file);
// The file of a question, as far as the question has it.
MappedFile file_of(const tacho_file_question& question);
// The mapping of a process at an address, which identifies the file without its name.
Result<MappedFile> file_asked_for(const tacho_file_question& question);

// The unwind table of a file, with rows by file offset and not by ELF address, as mappings have file
// offsets. Empty when the file has none. `key`: the file's identity in the kernel, where its file system
// has one.
struct FileTable {
  unwind::RowTable rows;
  std::optional<tacho_file_key> key;
};
Result<FileTable> table_of_file(const MappedFile& file, const unwind::RowLimits& limits,
                                const std::string& proc = "/proc");

}  // namespace tacho::record
