// --pinned-files, for the commands that tacho-record runs: files that it kept open.
#pragma once

#include <optional>

#include "cli/options.h"
#include "symbolize/files/pinned_files.h"

namespace tacho::report {

// The files are open in this process. A worker must keep their descriptors.
cli::Option pinned_files_option(std::optional<symbolize::PinnedFiles>& pinned);

}  // namespace tacho::report
