// COMPRESSED records: the input is cut into pieces of its first byte's length and fed as one stream.
#include <algorithm>

#include "format/codec/compression.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  auto inflater = RecordInflater::create();
  if (!inflater || size < 1) return 0;
  const std::size_t step = data[0] * 8U + 1;
  const Bytes all = std::as_bytes(std::span(data + 1, size - 1));
  Buffer out;
  std::size_t total = 0;  // small inputs can ask for hours: what comes later is like what came before
  for (std::size_t at = 0; at < all.size() && total < 4 * kLimit; at += step) {
    out.clear();
    if (!inflater->inflate(all.subspan(at, std::min(step, all.size() - at)), kLimit, out)) inflater->reset();
    if (out.size() > kLimit + 1) __builtin_trap();
    total += out.size();
  }
  return 0;
}
