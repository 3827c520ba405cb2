// Blocks whose records wait for long, packed in memory meanwhile.
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
  std::size_t size = 0;  // bytes that it holds
};

// It keeps the memory of one block from one use to the next.
class BlockCache {
 public:
  // Nothing when the block is hardly smaller when packed. Throws std::bad_alloc when there is no memory to do
  // it in.
  std::optional<CompressedBlock> pack(Bytes block);
  // The same bytes anew. Throws std::bad_alloc when there is no memory for them.
  Buffer unpack(const CompressedBlock& parked);
  // What unpack() gave is not needed any more: the next ones are inflated there, as fresh pages cost more
  // than what is inflated into them.
  void take_back(Buffer block);
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
