// Files that tacho-record kept open while it recorded, since some are deleted or replaced before the capture
// is packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

class HeldFiles {
 public:
  // `listing`: a descriptor of a file that names each by its descriptor here, with a 0 behind each:
  // "FD b PID BUILDID NAME" a binary ("-": it has no build id), "FD m PID - " names of code that the process
  // made at run time.
  static Result<HeldFiles> read(int listing);

  // One more binary, found by its build id alone.
  void add(format::Fd file, const format::BuildId& id);

  // Those that the listing names.
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

}  // namespace tacho::symbolize
