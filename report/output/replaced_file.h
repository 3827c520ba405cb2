// Whether a capture may be replaced by a copy of itself.
#pragma once

#include <sys/stat.h>

#include <string>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/capture_reader.h"

namespace tacho::report {

// Checks that a capture may be replaced by a copy of itself. An error, with advice, when its recorder still
// runs or was killed, when it is a directory, or when `diagnostics` of its reading report damage. `what` is
// the participle for the message: "rewritten".
Result<> check_whole(const format::CaptureReader& reader, const format::Diagnostics& diagnostics,
                     const std::string& input, const std::string& what);
Result<> check_no_folder(const std::string& input, const std::string& what);

// The identity of a file (device, inode, size, times) at one moment.
class FileState {
 public:
  static Result<FileState> of(const std::string& path);
  // An error when `path` is another file now or the file has changed.
  Result<> check_same(const std::string& path) const;

 private:
  struct stat state_ {};
};

}  // namespace tacho::report
