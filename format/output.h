// A new file for what we write, that nobody can mistake or misuse.
#pragma once

#include <string>

#include "format/file.h"
#include "format/result.h"

namespace tacho::format {

// Made under a temporary name with O_EXCL and mode 0600, an existing regular file of that name kept as
// NAME.old, then renamed at once, so that what is written is found under its name even after a kill -9. All
// of it happens in the folder that was looked at first, whatever its path leads to meanwhile.
//
// Root refuses folders in which others may replace files, and does not move files of others.
Result<Fd> create_output(const std::string& path);

// Whether create_output() would be allowed to make that file, which is told before the time when it is
// wanted.
Result<> check_output(const std::string& path);

}  // namespace tacho::format
