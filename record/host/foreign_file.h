// Files named by other processes. A recorder with root's rights must open regular files only, and only those
// that these processes see.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// A file that was found and is not open yet.
struct ForeignFile {
  format::Fd path_fd;  // O_PATH
  struct stat status {};
};

// Finds only regular files with that inode on file systems for data: files of the kernel's own file systems
// (proc, sysfs, tracefs) have effects when they are opened or read. Opens no file, and follows no link in the
// last part of the path. Before Linux 5.6, a folder that is a link to an absolute path is resolved in this
// process's view.
Result<ForeignFile> find_foreign(const ForeignPath& path);
// Opens it for reading, without waiting for the holder of a lease. The error names `path`.
Result<format::Fd> open_found(const ForeignFile& file, const std::string& path);
Result<format::Fd> open_foreign(const ForeignPath& path);

// Whether a process has the same view of the file system as this process, found without access to any file
// system. `folder`: "/proc/7".
enum class View : std::uint8_t {
  Ours,
  Other,
  Unknown,  // it ended, or this process lacks the right
};
View view_of(const std::string& folder);

// Reads the first bytes of files on a thread, since a network or FUSE file system may not answer, and the
// recorder must not wait forever for a file that a process has mapped.
class TimedFileReader {
 public:
  using Bytes = std::optional<std::vector<std::byte>>;
  // The head of the file at a path; empty: it does not exist, or may not be read (find_foreign()).
  using Reader = std::function<Bytes(const ForeignPath& path)>;
  static Bytes read_head(const ForeignPath& path);

  explicit TimedFileReader(std::chrono::milliseconds patience = std::chrono::seconds(1),
                           Reader reader = read_head)
      : patience_(patience), reader_(std::move(reader)) {}
  TimedFileReader(const TimedFileReader&) = delete;
  TimedFileReader& operator=(const TimedFileReader&) = delete;
  TimedFileReader(TimedFileReader&&) = default;
  ~TimedFileReader();

  // The scope of a file: if a file does not answer, files of the same scope are avoided. It is the file
  // system for network and FUSE file systems (major number 0), and the file for disks, which may only be
  // slow. For the unknown device 0:0 it is decided by the mounts of the process in `folder` ("/proc/7"), or
  // else is the file's folder.
  static std::string scope_of(std::uint32_t major, std::uint32_t minor, const std::string& name,
                              const std::string& folder);

  // Reads the first of `paths` that exists. A file that takes longer than the limit is abandoned, with its
  // thread. After two abandoned files of a scope, no file of it is opened for a while, each time longer.
  // After 16 abandoned threads in the program, or if no thread can be created, no file is opened.
  Bytes head_of(std::vector<ForeignPath> paths, const std::string& scope);
  // Whether each of `paths` can be opened and read in time; true as well for a path that does not exist.
  bool answers(std::vector<ForeignPath> paths, const std::string& scope);

 private:
  struct Shared;
  enum class Want : std::uint8_t { First, All };  // of the paths
  bool start();
  std::optional<Bytes> ask(std::vector<ForeignPath> paths, Want want, const std::string& scope);

  std::chrono::milliseconds patience_;
  Reader reader_;
  struct Hanging {
    int files = 0;
    std::chrono::steady_clock::time_point since;  // the last abandoned file
  };
  std::map<std::string, Hanging> hanging_;  // by scope
  std::shared_ptr<Shared> shared_;          // with the thread, when there is one
};

}  // namespace tacho::record
