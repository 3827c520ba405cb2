// Files of a module: the candidate paths in perf's order, files that tacho-record pinned, and debuginfod.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/build_id.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

// Files that tacho-record kept open while it recorded, since some are deleted or replaced before the capture
// is packed.

class PinnedFiles {
 public:
  // `listing`: a descriptor of a file that names each by its descriptor here, with a 0 behind each:
  // "FD b PID BUILDID NAME" a binary ("-": it has no build id), "FD m PID - " names of code that the process
  // made at run time.
  static Result<PinnedFiles> read(int listing);

  // One more binary, found by its build id alone.
  void add(format::Fd file, const format::BuildId& id);

  // Descriptors of all files of the listing.
  std::vector<int> descriptors() const;

  // A descriptor of its own, by build id or else by name. The code ENOENT: none had it; ENOTUNIQ: several.
  Result<format::Fd> binary(std::string_view name, const format::BuildId& id) const;
  // Where no other process with this number had one (else the code ENOTUNIQ); ENOENT where none was held.
  Result<format::Fd> perf_map(std::uint32_t process) const;

 private:
  struct Row {
    int file = -1;
    bool is_perf_map = false;
    std::uint32_t process = 0;
    format::BuildId build_id;
    std::string name;
  };
  template <class Is>
  Result<format::Fd> only(Is&& is) const;

  std::vector<Row> rows_;
  std::vector<format::Fd> own_;  // descriptors given to add()
};

// Fetches debug files from debuginfod servers by build id. libdebuginfod is loaded on first use and optional.

class Debuginfod {
 public:
  // The servers are those of the environment variable DEBUGINFOD_URLS, as every tool that asks them has it.
  static Result<Debuginfod> connect();
  Debuginfod(Debuginfod&&) noexcept;
  Debuginfod& operator=(Debuginfod&&) noexcept;
  ~Debuginfod();

  // The file with the debugging sections, and the one that ran. Whether what came has that build id is for
  // the caller to see.
  Result<format::Fd> debug_information(const format::BuildId& id);
  Result<format::Fd> executable(const format::BuildId& id);

 private:
  struct State;
  explicit Debuginfod(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Candidate paths of a module's file and of its separate debug file, in perf's order, and opening them:
// always below one root folder, since paths in a capture are untrusted.

enum class Whose : std::uint8_t { RecordingHost, ThisMachine };

struct Candidate {
  std::string path;  // absolute
  char source =
      '!';  // perf's letter: l debuglink, f and u debug folder by path, b by build id, B and D cache
  Whose whose = Whose::RecordingHost;  // this machine's files are not below the root
};

class DebugFiles {
 public:
  // `root` stands for the recording host's "/"; empty: this machine's own; kNoFiles: no file is there.
  // `cache` is a folder of this machine where perf keeps files by their build ids (~/.debug); empty: none.
  // `pinned` and `capture` may be null, and must outlive this. `capture` says which host was recorded, whose
  // inodes are compared (check_mapped).
  explicit DebugFiles(std::string root, std::string cache = {}, const PinnedFiles* pinned = nullptr,
                      const format::Features* capture = nullptr)
      : root_(std::move(root)), cache_(std::move(cache)), pinned_(pinned), capture_(capture) {}

  const std::string& root() const { return root_; }

  // Opens a regular file, but none of /proc or /sys. Symbolic links and ".." cannot lead out of the root. The
  // error names the file.
  Result<format::Fd> open(const std::string& path) const;
  // The same, but nothing when the last part of the path is a link.
  Result<format::Fd> open_itself(const std::string& path) const;
  // The whole file, at most `limit` bytes. `place` is its name for messages.
  static Result<std::vector<std::byte>> read_opened(const format::Fd& file, const std::string& place,
                                                    std::uint64_t limit);
  Result<std::vector<std::byte>> read(const std::string& path, std::uint64_t limit) const;
  Result<format::Fd> open(const Candidate& candidate) const;
  // A file that was held open while it was mapped: under this name, or with this build id, which is for the
  // caller to check.
  Result<format::Fd> open_pinned(std::string_view path, const format::BuildId& id) const;
  Result<std::vector<std::byte>> read_pinned(std::string_view path, const format::BuildId& id,
                                             std::uint64_t limit) const;
  // The names of code that the process of this number made at run time, from a file that was held open.
  Result<std::vector<std::byte>> read_pinned_map(std::string_view process, std::uint64_t limit) const;
  // An error with the code ENOTUNIQ: `file`, which has the module's name now, is not the file that was
  // mapped. Its inode differs from the recorded one, on the same device of the recorded host. Files with the
  // module's build id are those that were written after the last sample: an id that was recorded by then is
  // not theirs by chance.
  Result<> check_mapped(const format::Fd& file, const Module& module) const;
  // The name of the file on this machine, for messages.
  std::string place(const std::string& path) const;
  std::string place(const Candidate& candidate) const {
    return candidate.whose == Whose::ThisMachine ? candidate.path : place(candidate.path);
  }

  // A line about the file at `path`: where that is on this machine, and then `note` and the reason. The
  // reason may begin with the place itself.
  std::string message(const std::string& path, const std::string& reason, std::string_view note = {}) const;

  // Where the split-off symbols of `module` may be. `debuglink` is what the module's own file says, or empty.
  std::vector<Candidate> candidates(const std::string& module, const format::BuildId& id,
                                    const std::string& debuglink) const;
  // Where the part may be that `file` shares with others (dwz), which its link calls `link`.
  static std::vector<Candidate> shared_parts(const Candidate& file, const std::string& link,
                                             const format::BuildId& id);

 private:
  std::string root_;
  std::string cache_;
  const PinnedFiles* pinned_;
  const format::Features* capture_;
};

// By the names of host and kernel.
bool is_this_host(const format::Environment& environment);

}  // namespace tacho::symbolize
