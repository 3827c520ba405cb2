// The file that a library's or program's name stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::record {

// `name`: a path, or a name that is looked for: among the files that this program itself has mapped
// ("libc.so.6"), in LD_LIBRARY_PATH, as the dynamic linker would find it, in the folders of libraries and
// along PATH. With a `process` (otherwise -1): among those that it has mapped, as it may have others in a
// container; a path is one of its root folder. An error of the use says what there is not.
Result<std::string> library_file(const std::string& name, int process);

// Where the dynamic linker's cache (/etc/ld.so.cache, which ldconfig writes) says that a library of this
// machine's kind lies.
std::optional<std::string> cached_library(format::Bytes cache, std::string_view name);

// The path of a library that is installed with tacho-record: beside it, or in the folder of libraries;
// nothing when it is not there.
std::optional<std::string> own_library(const std::string& name);

}  // namespace tacho::record
