#include "format/codec/block_cache.h"

#include <zstd.h>

#include <new>
#include <utility>

namespace tacho::format {
namespace {

constexpr int kLevel = 1;  // of zstd

}  // namespace

void BlockCache::Free::operator()(ZSTD_CCtx_s* context) const noexcept { ZSTD_freeCCtx(context); }
void BlockCache::Free::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

std::optional<CompressedBlock> BlockCache::pack(Bytes block) {
  if (!packer_) packer_.reset(ZSTD_createCCtx());
  if (!packer_) throw std::bad_alloc();
  spare_.clear();
  spare_.resize(ZSTD_compressBound(block.size()));
  const std::size_t size =
      ZSTD_compressCCtx(packer_.get(), spare_.data(), spare_.size(), block.data(), block.size(), kLevel);
  if (ZSTD_isError(size) != 0 || size > block.size() / 4 * 3) return std::nullopt;
  CompressedBlock compressed{.packed = {}, .size = block.size()};
  compressed.packed.reserve(size);
  compressed.packed.append({spare_.data(), size});
  return compressed;
}

Buffer BlockCache::unpack(const CompressedBlock& compressed) {
  if (!unpacker_) unpacker_.reset(ZSTD_createDCtx());
  if (!unpacker_) throw std::bad_alloc();
  Buffer block = std::exchange(spare_, {});
  block.clear();
  block.reserve(compressed.size);
  block.resize(compressed.size);
  const std::size_t size = ZSTD_decompressDCtx(unpacker_.get(), block.data(), compressed.size,
                                               compressed.packed.data(), compressed.packed.size());
  // This process compressed the block, so an error means that there is no memory.
  if (size != compressed.size) throw std::bad_alloc();
  return block;
}

void BlockCache::give_back(Buffer block) {
  if (block.capacity() > spare_.capacity()) spare_ = std::move(block);
}

}  // namespace tacho::format
