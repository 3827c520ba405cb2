// The bytes of a profile to import: a file or standard input, unpacked if gzip packed it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::report {

inline constexpr std::size_t kMostImported = std::size_t{1} << 30;  // bytes, unpacked

// `path`: "-" is standard input. An error: it cannot be read, or is larger than `most` bytes.
Result<std::vector<std::byte>> read_import_input(const std::string& path, std::size_t most = kMostImported);
// The same of bytes: the contents of gzip's members, one after the other, or the bytes themselves.
Result<std::vector<std::byte>> unpack_gzip(std::vector<std::byte> bytes, std::size_t most = kMostImported);

}  // namespace tacho::report
