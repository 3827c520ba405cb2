// Who else could change a file or put another one in its place. Root acts on files that the caller names:
// what it loads into the kernel, and where it writes, must be up to nobody but root and that caller.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "format/result.h"

namespace tacho::format {

// Why others than root, the user of this process and the one who called sudo may change what has this status
// ("belongs to user 1000"), or nothing. In a folder with the sticky bit everybody may add files, but only
// owners replace them.
std::optional<std::string> who_else_may_change(const struct stat& status);

// The same for a path: the file, its folder, every folder above and every link on the way. The error names
// the first one that others may change, and its code is EPERM then. When all is well, nobody else can make
// the path lead elsewhere later.
Result<> check_trusted_path(const std::string& path);

}  // namespace tacho::format
