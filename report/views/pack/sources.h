// Copies of source files, for `tacho pack --level code`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "format/extensions/attachment.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

struct SourceCopies {
  std::vector<format::Attachment> attachments;
  std::size_t left_out = 0;  // files that are here and found no room
};

// Copies the files among `paths` that are source by their names. The paths come from debugging information,
// which can name any file, and others may get the capture. At most 4 MB of one file and 64 MB of all.
SourceCopies copy_sources(const std::set<std::string>& paths, const symbolize::SymbolOptions& options,
                          symbolize::FileGate& gate);

}  // namespace tacho::report
