// Files that other processes name: a recorder with root's rights must open nothing else than files, and none
// that lies elsewhere than these processes see it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "format/file.h"
#include "format/result.h"

namespace tacho::record {

struct ForeignPath {
  // The folder that is the root of whoever named the path, "/proc/7/root": no link leads out of it. Empty:
  // `path` is a link of the kernel's that is the file itself, "/proc/7/map_files/1000-2000".
  std::string root;
  std::string path;
  std::uint64_t inode = 0;  // 0: whichever the file has
};

// A file that was found, and not opened yet.
struct ForeignFile {
  format::Fd place;  // O_PATH
  struct stat status {};
};

// Only of a regular file, with that inode, on a file system for data: the kernel's own (proc, sysfs, tracefs
// and their like) do things when their files are opened or read. Neither opens it nor follows a link in the
// last part. Before Linux 5.6 a link to an absolute path in a folder's place is followed as we see it.
Result<ForeignFile> find_foreign(const ForeignPath& path);
// For reading, without waiting for whoever holds a lease on it. The error names `path`.
Result<format::Fd> open_found(const ForeignFile& file, const std::string& path);
Result<format::Fd> open_foreign(const ForeignPath& path);

// Whether a process sees the file system as we do, with nothing asked of any file system. `folder`:
// "/proc/7".
enum class View : std::uint8_t {
  Ours,
  Other,
  Unknown,  // it ended, or we have no right to know
};
View view_of(const std::string& folder);

}  // namespace tacho::record
