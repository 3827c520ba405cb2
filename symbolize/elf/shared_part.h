// The link to a supplementary file, which holds debugging information that several files share (dwz):
// .gnu_debugaltlink, or DWARF 5's .debug_sup.
#pragma once

#include <string>

#include "format/records/build_id.h"

namespace tacho::symbolize {

struct SharedPart {
  std::string path;               // as the link says: absolute, or beside the file
  format::BuildId build_id;       // of .debug_sup: the checksum, which stands in both files' sections
  bool is_supplementary = false;  // of .debug_sup: that file has no build id of its own
};

}  // namespace tacho::symbolize
