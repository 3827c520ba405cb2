// Read buffer over a capture's file descriptor: holds the bytes that were read and not consumed yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/cursor.h"
#include "format/base/diagnostics.h"

namespace tacho::format {

class ByteWindow {
 public:
  static constexpr std::uint64_t kUntilTheEnd = ~std::uint64_t{0};

  // Reads at most `size` bytes from `fd`'s position, which is `offset` in the file. `grows`: the file may
  // grow, also past `size`. The descriptor and `diagnostics` must outlive the window.
  ByteWindow(int fd, std::uint64_t offset, std::uint64_t size, bool grows, Diagnostics& diagnostics)
      : fd_(fd), offset_(offset), unread_(size), grows_(grows), diagnostics_(&diagnostics) {}

  // The bytes that were read and not consumed yet.
  Bytes bytes() const { return Bytes(block_->bytes).subspan(at_); }
  // Offset in the file of the window's first byte.
  std::uint64_t offset() const { return offset_; }
  // The block that holds the window: a view of the window's bytes is valid as long as its block is kept.
  const std::shared_ptr<Block>& block() const { return block_; }

  // Reads until the window has at least `size` bytes. False: the source ended before, and the window has the
  // rest. Memory grows only with bytes that were read.
  bool ensure(std::size_t size);
  // Consumes the first `size` bytes, which must be in the window.
  void skip(std::size_t size) {
    at_ += size;
    offset_ += size;
  }
  // Skips up to `size` bytes; a file is not read there. Returns how many were skipped: fewer only at the
  // source's end.
  std::uint64_t step_over(std::uint64_t size);
  // nullopt: a pipe. The number of bytes from the window's start to the file's end; and up to `size` bytes
  // from `ahead` bytes after the window's start on.
  std::optional<std::uint64_t> left_in_file() const;
  std::vector<std::byte> peek(std::uint64_t ahead, std::size_t size) const;
  // Consumes the window and the hole of the file after it when both are all zeros. The hole's last bytes
  // stay, since a record in the other byte order may start with zeros. Returns whether anything was consumed.
  bool skip_hole();
  // Drops the window's bytes and frees the memory.
  void release();

  bool grows() const { return grows_; }
  bool ends_unknown() const { return unread_ == kUntilTheEnd; }
  void extend(std::uint64_t bytes) { unread_ += bytes; }
  void end_growing() { grows_ = false; }

 private:
  bool may_read() const;
  std::shared_ptr<Block> free_block();

  int fd_;
  // The window is bytes [at_, end) of the block; its first byte is at offset_ in the file. unread_ more bytes
  // may be read after the block.
  std::shared_ptr<Block> block_ = std::make_shared<Block>();
  std::size_t at_ = 0;
  std::uint64_t offset_;
  std::uint64_t unread_;
  // Bytes of one read: few system calls, and the block stays in the L2 cache.
  static constexpr std::size_t kChunk = 1024 * 1024;
  std::size_t chunk_ = kChunk;  // of the next one
  bool grows_;
  std::vector<std::shared_ptr<Block>> used_;  // used blocks, filled again once they have no other owner
  std::size_t oldest_used_ = 0;
  Diagnostics* diagnostics_;
};

}  // namespace tacho::format
