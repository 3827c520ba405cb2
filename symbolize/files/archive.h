// What `perf archive` makes of perf's cache of files: a tar, mostly packed by bzip2.
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
  // Programs and libraries, by the build ids that they have themselves: what the archive calls them counts
  // for nothing, and nothing gets such a name.
  std::vector<File> files;
  std::vector<std::string> lacks;  // what was left out, each reason once
};

// Whether the file is one, by its first bytes.
bool is_archive(const std::string& path);
// An error when it cannot be read at all. `most`: bytes that it may unpack to, and the archives in it.
Result<Archive> read_archive(const std::string& path, std::uint64_t most = std::uint64_t{2} << 30);

}  // namespace tacho::symbolize
