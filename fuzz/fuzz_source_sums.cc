// MD5 sums of source files: headers of DWARF 5 line tables, and the list that tacho pack attaches.
#include <cstdint>
#include <cstdlib>

#include "symbolize/elf/line_sums.h"
#include "symbolize/files/source_files.h"

using namespace tacho;
using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const format::Bytes bytes = std::as_bytes(std::span(data, size));
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    const LineSums sums({.lines = bytes, .line_texts = bytes, .texts = bytes, .order = order});
    if (sums.sums_of("/src/hot.c").size() > 8) std::abort();
  }
  if (const auto attached = format::pack_attachment("source-md5", "", bytes)) {
    const SourceSums sums = sums_in(*attached);
    if (sums.empty()) return 0;
    const auto again = attach_sums(sums);
    if (!again || sums_in(*again) != sums) std::abort();
  }
  return 0;
}
