// Libraries that a program maps when it starts, found before it does: as its dynamic section names them and
// the host's dynamic linker looks for them. A guess, good for building tables ahead.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/cursor.h"

namespace tacho::record {

// By name, as /etc/ld.so.cache tells for this machine; the first of several. Empty when it is none of glibc's
// (2.2 and later).
using LibraryPaths = std::map<std::string, std::string, std::less<>>;
LibraryPaths libraries_of_cache(format::Bytes cache);

// Paths, nearest first, each once: the program's interpreter, what it needs, what that needs. At most 128.
// The files may be anybody's: of each no more than 128 names of at most 255 bytes and 64 folders are looked
// at, and what was found by then is the answer when `stop` says true (it may be empty).
std::vector<std::string> needed_libraries(const std::string& program, const LibraryPaths& known,
                                          const std::function<bool()>& stop = {});

}  // namespace tacho::record
