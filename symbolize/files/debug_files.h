// Files of a module: the candidate paths in perf's order, and how they are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/build_id.h"
#include "symbolize/files/pinned_files.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

enum class Host : std::uint8_t { Recorded, This };

// A path at which a module's file, or its separate debug file, may be.
struct Candidate {
  std::string path;  // absolute
  char source =
      '!';  // perf's letter: l debuglink, f and u debug folder by path, b by build id, B and D cache
  Host host = Host::Recorded;  // of which the path is; paths of this host are not below the root
};

// Lists the candidates in perf's order, and opens files: always below one root folder, since paths in a
// capture are untrusted.
class DebugFiles {
 public:
  // `root`: the recording host's "/" (--symfs); empty: this machine's; kNoFiles: no files are read. `cache`:
  // perf's cache of files by build id on this machine (~/.debug); empty: none. `pinned` and `features` may be
  // null and must outlive this. `features`: of the capture, for check_mapped().
  explicit DebugFiles(std::string root, std::string cache = {}, const PinnedFiles* pinned = nullptr,
                      const format::Features* features = nullptr)
      : root_(std::move(root)), cache_(std::move(cache)), pinned_(pinned), features_(features) {}

  const std::string& root() const { return root_; }

  // Opens a regular file, but none of /proc or /sys. Symbolic links and ".." cannot lead out of the root. The
  // error names the file.
  Result<format::Fd> open_file(const std::string& path) const;
  // The same, but an error if the last part of the path is a link.
  Result<format::Fd> open_itself(const std::string& path) const;
  // The whole file, at most `limit` bytes. `name`: for messages.
  static Result<std::vector<std::byte>> read_opened(const format::Fd& file, const std::string& name,
                                                    std::uint64_t limit);
  Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t limit) const;
  Result<format::Fd> open_candidate(const Candidate& candidate) const;
  // A pinned file with this name or build id. The caller has to check the build id.
  Result<format::Fd> open_pinned(std::string_view path, const format::BuildId& id) const;
  Result<std::vector<std::byte>> read_pinned(std::string_view path, const format::BuildId& id,
                                             std::uint64_t limit) const;
  // The pinned perf map of a process.
  Result<std::vector<std::byte>> read_pinned_map(std::string_view process, std::uint64_t limit) const;
  // Checks that `file`, which has the module's name now, is the file that was mapped. Error code ENOTUNIQ: on
  // the recorded host, its inode differs from the recorded one on the same device. A file with the module's
  // build id is accepted.
  Result<> check_mapped(const format::Fd& file, const Module& module) const;
  // The path of the file on this host, for messages.
  std::string local_path(const std::string& path) const;
  std::string local_path(const Candidate& candidate) const {
    return candidate.host == Host::This ? candidate.path : local_path(candidate.path);
  }
  // A message about the file at `path`: its path on this host, `note`, and the reason, which may begin
  // with that path already.
  std::string message(const std::string& path, const std::string& reason, std::string_view note = {}) const;

  // Candidates for the debug file of `module`. `debuglink`: of the module's file; empty: none.
  std::vector<Candidate> candidates(const std::string& module, const format::BuildId& id,
                                    const std::string& debuglink) const;
  // Candidates for the supplementary file (dwz) of `file`, host link names `link`.
  static std::vector<Candidate> supplementary_files(const Candidate& file, const std::string& link,
                                                    const format::BuildId& id);

 private:
  std::string root_;
  std::string cache_;
  const PinnedFiles* pinned_;
  const format::Features* features_;
};

// The folder of a path, with a slash.
std::string folder_of(const std::string& path);

// Whether the path is below the folder `root` when all links are followed.
bool is_below(const std::string& path, const std::string& root);

// Whether the open file is on proc, sysfs or similar: reading such files can have effects, or never end.
bool is_pseudo_file(int file);

// Whether this is the recorded host, by the names of host and kernel.
bool is_this_host(const format::Environment& environment);

}  // namespace tacho::symbolize
