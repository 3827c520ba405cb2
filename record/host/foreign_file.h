// Files that other processes name: a recorder with root's rights must open nothing but regular files, and
// only where these processes see them.
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
  // `path` is a kernel link that is the file itself, "/proc/7/map_files/1000-2000".
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
// For reading, without waiting for the holder of a lease on it. The error names `path`.
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

// The first bytes of files on file systems that may not answer (a network's, a program's own), read on a
// thread of its own: a recorder must not wait for ever for a file that some process has mapped.

class TimedFileReader {
 public:
  using Bytes = std::optional<std::vector<std::byte>>;
  // The head of the file at a path; nothing when it is not there or is none to read (find_foreign()).
  using Reader = std::function<Bytes(const ForeignPath& path)>;
  static Bytes read_head(const ForeignPath& path);

  explicit TimedFileReader(std::chrono::milliseconds patience = std::chrono::seconds(1),
                           Reader reader = read_head)
      : patience_(patience), reader_(std::move(reader)) {}
  TimedFileReader(const TimedFileReader&) = delete;
  TimedFileReader& operator=(const TimedFileReader&) = delete;
  TimedFileReader(TimedFileReader&&) = default;
  ~TimedFileReader();

  // What is given up when a file hangs: of a network or FUSE file system (devices without a major number)
  // the whole file system, of a disk only the file, as it may only be slow. For device 0:0 (not known) the
  // mounts of the process in `folder` ("/proc/7") say which, or else it is the file's folder.
  static std::string place_of(std::uint32_t major, std::uint32_t minor, const std::string& name,
                              const std::string& folder);

  // A file that takes longer than the patience is given up, and the thread is left behind until it answers.
  // Of a place with two such files none is opened for a while, each time for longer. When 16 threads of the
  // program are left behind, or no thread can be had, no file is opened at all. Of the first of `paths` that
  // is there.
  Bytes head_of(std::vector<ForeignPath> paths, const std::string& place);
  // Whether each of `paths` can be opened and read without waiting for ever; or that it is not there.
  bool answers(std::vector<ForeignPath> paths, const std::string& place);

 private:
  struct Shared;
  enum class Want : std::uint8_t { First, All };  // of the paths
  bool start();
  std::optional<Bytes> ask(std::vector<ForeignPath> paths, Want want, const std::string& place);

  std::chrono::milliseconds patience_;
  Reader reader_;
  struct Hanging {
    int files = 0;
    std::chrono::steady_clock::time_point since;  // the last one
  };
  std::map<std::string, Hanging> hanging_;  // by place
  std::shared_ptr<Shared> shared_;          // with the thread, when there is one
};

}  // namespace tacho::record
