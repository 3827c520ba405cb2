// Reads the output of `perf archive`: files of perf's cache in a tar, usually compressed with bzip2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

struct Archive {
  struct File {
    format::BuildId build_id;
    format::Fd file;  // in memory
  };
  // Programs and libraries with the build ids in the files. Names in the archive are not used.
  std::vector<File> files;
  std::vector<std::string> ignored;  // messages about ignored files, one for each reason
};

// Whether the file is an archive, by its first bytes.
bool is_archive(const std::string& path);
// An error: no file in it can be read. `most`: the limit of decompressed bytes, archives in it included.
Result<Archive> read_archive(const std::string& path, std::uint64_t most = std::uint64_t{2} << 30);

}  // namespace tacho::symbolize
