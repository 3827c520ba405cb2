// What perf archive wrote, packed by bzip2 or not: whatever it says, its files have build ids, and there are
// no more bytes in them than in the archive, where that is not packed.
#include <sys/stat.h>

#include <cstdlib>

#include "fuzz/memory_file.h"
#include "symbolize/files/archive.h"

using namespace tacho;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  const bool is_packed = size > 0 && data[0] == 'B';
  const auto archive = symbolize::read_archive(file.path());
  if (!archive) return 0;
  std::size_t all = 0;
  for (const auto& one : archive->files) {
    struct stat status {};
    if (one.build_id.empty() || ::fstat(one.file.get(), &status) != 0) std::abort();
    all += static_cast<std::size_t>(status.st_size);
  }
  if (!is_packed && all > size) std::abort();
  return 0;
}
