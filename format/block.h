// A stretch of capture bytes that records point into; kept alive as long as one of them waits.
#pragma once

#include <cstddef>
#include <memory>

#include "format/buffer.h"

namespace tacho::format {

struct Block {
  Buffer bytes;
  // Bytes of the capture it was inflated from; 0 when it stands in the capture as it is.
  std::size_t packed = 0;
};
using BlockRef = std::shared_ptr<const Block>;

}  // namespace tacho::format
