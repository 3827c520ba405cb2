// The files that tacho-record pinned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

// Files that tacho-record kept open (pinned) while recording, since they may be deleted or replaced before
// packing.
class PinnedFiles {
 public:
  // `listing`: a descriptor of a file with a NUL-terminated entry for each inherited descriptor:
  // "FD b PID BUILDID NAME" for a binary (BUILDID "-": none), "FD m PID - " for a perf map.
  static Result<PinnedFiles> read(int listing);

  // Adds a binary, which is found by its build id only.
  void add_file(format::Fd file, const format::BuildId& id);

  // Descriptors of all files of the listing.
  std::vector<int> descriptors() const;

  // A duplicated descriptor of the binary with this build id, or else with this name. Error codes: ENOENT:
  // there is none; ENOTUNIQ: several.
  Result<format::Fd> binary(std::string_view name, const format::BuildId& id) const;
  // The perf map of a process. Error codes: ENOTUNIQ: several processes had this pid; ENOENT: there is none.
  Result<format::Fd> perf_map(std::uint32_t process) const;

 private:
  struct Row {
    int file = -1;
    bool is_perf_map = false;
    std::uint32_t process = 0;
    format::BuildId build_id;
    std::string name;
  };
  // A duplicate of the first row's descriptor that `is_wanted` accepts.
  template <class IsWanted>
  Result<format::Fd> duplicate(IsWanted&& is_wanted) const;

  std::vector<Row> rows_;
  std::vector<format::Fd> own_;  // descriptors given to add_file()
};

}  // namespace tacho::symbolize
