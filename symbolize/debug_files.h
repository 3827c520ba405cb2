// Where a module's file and its split-off debug information may lie, in perf's order, and how they are
// opened: always below one root folder, whatever the names in a capture say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/build_id.h"
#include "format/file.h"
#include "format/result.h"

namespace tacho::symbolize {

struct Candidate {
  std::string path;   // absolute, as on the recording host
  char source = '!';  // perf's letter: l debuglink, f and u debug folder by path, b by build id
};

class DebugFiles {
 public:
  // `root` stands for the recording host's "/"; empty: this machine's own.
  explicit DebugFiles(std::string root) : root_(std::move(root)) {}

  // Opens a regular file. Symbolic links and ".." cannot lead out of the root. The error names the file
  // looked at.
  Result<format::Fd> open(const std::string& path) const;
  // The whole file, at most `limit` bytes.
  Result<std::vector<std::byte>> read(const std::string& path, std::uint64_t limit) const;
  // The name of the file on this machine, for messages.
  std::string place(const std::string& path) const { return root_ + path; }

  // Where the split-off symbols of `module` may be. `debuglink` is what the module's own file says, or empty.
  static std::vector<Candidate> candidates(const std::string& module, const format::BuildId& id,
                                           const std::string& debuglink);

 private:
  std::string root_;
};

}  // namespace tacho::symbolize
