// Files of network and FUSE file systems: while the server does not answer, a read waits in state D.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tacho::sandbox {

// The mount with a file, if it is of a network or of FUSE, found without access to it. Empty: it is not.
std::string network_mount_of(std::string_view path);

// Tries such files: a child process reads parts of each, and is left behind when it gets no answer for a
// second. Then all files of the mount count as silent. Any thread may call it.
class NetworkFiles {
 public:
  // `found_silent`: called for the first silent file of each mount.
  explicit NetworkFiles(std::function<void(std::string_view)> found_silent)
      : found_silent_(std::move(found_silent)) {}
  // Whether the file may be read: it answered when it was first asked about, or is of another file system.
  bool answers(std::string_view path);

 private:
  bool try_file(const std::string& path);

  std::function<void(std::string_view)> found_silent_;
  std::mutex mutex_;
  std::map<std::string, bool, std::less<>> known_;  // by path
  std::set<std::string> silent_mounts_;
};

}  // namespace tacho::sandbox
