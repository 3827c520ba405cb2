#include "symbolize/packed_code.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tacho::symbolize {

using format::PackedPiece;

void join_code(format::PackedModule& module) {
  constexpr std::uint64_t kLargestPiece = std::numeric_limits<std::uint32_t>::max();  // bytes
  const format::Bytes all = module.code_bytes;
  std::vector<PackedPiece> joined;
  std::vector<std::byte> code;
  code.reserve(all.size());
  for (const PackedPiece& piece : module.code) {
    const std::uint64_t moved = joined.empty() ? 0 : piece.start - joined.back().start;
    const bool is_further =
        joined.empty() || moved > joined.back().size || moved + piece.size > kLargestPiece;
    if (is_further) joined.push_back({.start = piece.start, .size = 0, .offset = code.size()});
    PackedPiece& last = joined.back();
    const std::uint64_t known = is_further ? 0 : last.size - moved;
    if (known >= piece.size) continue;
    const format::Bytes bytes = all.subspan(static_cast<std::size_t>(piece.offset), piece.size)
                                    .subspan(static_cast<std::size_t>(known));
    code.insert(code.end(), bytes.begin(), bytes.end());
    last.size += static_cast<std::uint32_t>(bytes.size());
  }
  module.code = std::move(joined);
  module.code_bytes = std::move(code);
}

}  // namespace tacho::symbolize
