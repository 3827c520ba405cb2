// Compresses blocks of records in memory while the records wait for their place in time order.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "format/base/buffer.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tacho::format {

struct CompressedBlock {
  Buffer packed;         // a zstd frame
  std::size_t size = 0;  // inflated bytes
};

// Keeps the memory of one inflated block for reuse, since page faults cost more than inflating.
class BlockCache {
 public:
  // nullopt: compression does not pay. Throws std::bad_alloc.
  std::optional<CompressedBlock> pack(Bytes block);
  // Inflates the block. Throws std::bad_alloc.
  Buffer unpack(const CompressedBlock& compressed);
  // Returns memory of unpack() for the next block.
  void give_back(Buffer block);
  void free_spare() { spare_ = {}; }

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> packer_;
  std::unique_ptr<ZSTD_DCtx_s, Free> unpacker_;
  Buffer spare_;
};

}  // namespace tacho::format
