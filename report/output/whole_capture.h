// Whether a capture is whole, and stays what it was: asked before something that was made of it takes its
// place.
#pragma once

#include <sys/stat.h>

#include <string>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/capture_reader.h"

namespace tacho::report {

// An error that says what to do when its recorder still runs or was killed, when it is a folder of several
// files, or damaged as far as `diagnostics` of its reading tell. `what` is not done then: "rewritten".
Result<> check_whole(const format::CaptureReader& reader, const format::Diagnostics& diagnostics,
                     const std::string& input, const std::string& what);
Result<> check_no_folder(const std::string& input, const std::string& what);

// The file that has a name, as it is at one moment.
class FileState {
 public:
  static Result<FileState> of(const std::string& path);
  // An error when `path` names another file now, or this one has changed.
  Result<> check_same(const std::string& path) const;

 private:
  struct stat state_ {};
};

}  // namespace tacho::report
