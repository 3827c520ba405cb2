// Files named by other processes. A recorder with root's rights must open regular files only, and only those
// that these processes see.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

struct ForeignPath {
  // The root folder of the process that named the path, "/proc/7/root": no link leads out of it. Empty:
  // `path` is a link of the kernel to the file itself, "/proc/7/map_files/1000-2000".
  std::string root;
  std::string path;
  std::uint64_t inode = 0;  // 0: any
};

// find_foreign(), open_found() and open_foreign() wait for the file system, which may never answer: only
// children of ForeignReader call them.

// A file that was found and is not open yet.
struct FoundFile {
  format::Fd path_fd;  // O_PATH
  struct stat status {};
};

// Finds only regular files with that inode on file systems for data: files of the kernel's own file systems
// (proc, sysfs, tracefs) have effects when they are opened or read. Opens no file, and follows no link in the
// last part of the path. Before Linux 5.6, a folder that is a link to an absolute path is resolved in this
// process's view.
Result<FoundFile> find_foreign(const ForeignPath& path);
// Opens it for reading, without waiting for the holder of a lease. The error names `path`.
Result<format::Fd> open_found(const FoundFile& file, const std::string& path);
Result<format::Fd> open_foreign(const ForeignPath& path);

// Whether a process has the same view of the file system as this process, found without access to any file
// system. `folder`: "/proc/7".
enum class View : std::uint8_t {
  Ours,
  Other,
  Unknown,  // it ended, or this process lacks the right
};
View view_of(const std::string& folder);

// The scope of a file: if a file does not answer, files of the same scope are avoided. It is the file system
// for network and FUSE file systems (major number 0), and the file for disks, which may only be slow. For the
// unknown device 0:0 it is decided by the mounts of the process in `folder` ("/proc/7"), or else is the
// file's folder.
std::string scope_of_file(std::uint32_t major, std::uint32_t minor, const std::string& name,
                          const std::string& folder);

}  // namespace tacho::record
