// Mapped files: their identity, where to open them, and their unwind tables. Also the allocator of id ranges.
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
#include "record/host/foreign_reader.h"
#include "unwind/elf_image.h"
#include "unwind/row_table.h"

namespace tacho::record {

// Allocates ranges of ids 0, 1, 2, ... Freed ranges are quarantined until no BPF walk can still use them.
class IdRangeAllocator {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuarantine{500};

  explicit IdRangeAllocator(std::uint32_t count) { grow(count); }

  // The first of `count` consecutive ids; nullopt: there is no such range.
  std::optional<std::uint32_t> take_range(std::uint32_t count, Clock::time_point now);
  void give_back(std::uint32_t first, std::uint32_t count, Clock::time_point now);
  // Whether there will be such a range, and `anywhere` free ids in all, when the quarantine ends.
  bool will_have(std::uint32_t count, std::uint32_t anywhere = 0) const;
  // Adds ids after the last one.
  void grow(std::uint32_t more);

  std::uint32_t size() const { return size_; }
  std::uint32_t taken() const { return taken_; }  // including those in quarantine

 private:
  struct Quarantined {
    Clock::time_point since;
    std::uint32_t first, count;
  };
  std::uint32_t free_later() const;
  void release_quarantined(Clock::time_point now);
  void add_free(std::uint32_t first, std::uint32_t count);

  std::map<std::uint32_t, std::uint32_t> free_;  // first id to count; adjacent ranges are merged
  std::deque<Quarantined> quarantine_;           // oldest first
  std::uint32_t size_ = 0, taken_ = 0;
};

// A mapped file: its identity, and where to open it.
struct MappedFile {
  format::BuildId build_id;
  std::uint32_t major = 0, minor = 0;  // with the inode: if the kernel reported no build id
  std::uint64_t inode = 0;
  // From the BPF program's request; size 0: unknown. The inode of a removed file is used again.
  std::uint64_t size = 0;
  std::uint64_t changed = 0;  // ns since 1970; 0: unknown
  std::uint32_t generation = 0;
  std::string name;           // in the kernel's records
  std::uint32_t process = 0;  // a process that maps it, at:
  std::uint64_t start = 0, end = 0;
};

MappedFile file_of(const format::MmapRecord& mapping);

inline constexpr int kNotOpened = ENOENT;  // error code: the file does not exist, or is another one

// A key that is equal for mappings of one file.
std::string identity(const MappedFile& file);
// Whether the name is certainly not that of a binary.
bool is_code_of_no_file(const std::string& name);

// Where the file may be opened: through the mapping itself, which works for deleted files, too; by its path
// as the process sees it; and by its path here, unless the process is known to see other files.
std::vector<ForeignPath> paths_of(const MappedFile& file, const std::string& proc = "/proc");
// The scope of the file, for ForeignReader.
std::string scope_of(const MappedFile& file, const std::string& proc = "/proc");
// Opens the first of its paths that leads to it.
Result<ForeignFile> open_binary(const MappedFile& file, ForeignReader& reader,
                                const std::string& proc = "/proc");
// Its parts as unwinding needs them. The file stays open while the image exists.
Result<unwind::ElfImage> image_of_file(ForeignFile file);
// Sets the identity of the file: its build id, size, time and generation.
void know(MappedFile& file, ForeignFile& opened);
// Empty: it has none.
format::BuildId build_id_of(ForeignFile& file);
// The file of a request, with what the request contains.
MappedFile file_of(const tacho_file_request& request);
// The mapping of a process at an address, which identifies a file without its name.
Result<MappedFile> requested_file(const tacho_file_request& request, ForeignReader& reader);

// The separate debug file of a mapped file, for its .debug_frame: below /usr/lib/debug by build id, or by
// .gnu_debuglink; it has the same build id. Nothing: there is none, or it does not answer.
std::optional<unwind::ElfImage> debug_image_of(const MappedFile& file, const unwind::ElfImage& image,
                                               ForeignReader& reader, const std::string& proc = "/proc");

// The unwind table of a file, with rows by file offset instead of ELF address, because mappings have file
// offsets. Empty: the file has no unwind information. `key`: the file's identity in the kernel, if its file
// system has one.
struct FileTable {
  unwind::RowTable rows;
  std::optional<tacho_file_key> key;
};
Result<FileTable> table_of_file(const MappedFile& file, ForeignReader& reader,
                                const unwind::RowLimits& limits, const std::string& proc = "/proc");

}  // namespace tacho::record
