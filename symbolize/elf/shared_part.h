// Another file that holds what the debugging information of several files had in common (dwz,
// .gnu_debugaltlink).
#pragma once

#include <string>

#include "format/build_id.h"

namespace tacho::symbolize {

struct SharedPart {
  std::string path;  // as the link says: absolute, or beside the file
  format::BuildId build_id;
};

}  // namespace tacho::symbolize
