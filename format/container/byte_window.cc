#include "format/container/byte_window.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "format/base/file.h"
#include "format/records/record_view.h"

namespace tacho::format {
namespace {

// Bytes of the first read after a skip: the next record may be skipped as well.
constexpr std::size_t kFirstChunk = 16 * 1024;

}  // namespace

// A used block that has no other owner any more (its memory is in the caches), or a new one.
std::shared_ptr<Block> ByteWindow::free_block() {
  constexpr std::size_t kMostUsed = 4;
  for (const std::shared_ptr<Block>& block : used_) {
    if (block.use_count() != 1) continue;
    if (block->bytes.capacity() > 2 * kChunk) block->bytes = {};  // grown for something large
    block->bytes.clear();
    return block;
  }
  auto block = std::make_shared<Block>();
  if (used_.size() < kMostUsed) {
    used_.push_back(block);
  } else {
    used_[oldest_used_] = block;
    oldest_used_ = (oldest_used_ + 1) % kMostUsed;
  }
  return block;
}

bool ByteWindow::ensure(std::size_t size) {
  std::size_t left = bytes().size();
  if (left >= size) return true;
  auto block = free_block();
  block->bytes.reserve(std::max(kChunk, left));
  block->bytes.append(bytes());
  block_ = std::move(block);
  at_ = 0;
  while (left < size && unread_ > 0 && may_read()) {
    const std::size_t wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>({kChunk, std::max(size - left, chunk_ - left % chunk_), unread_}));
    block_->bytes.resize(left + wanted);
    const ssize_t count = ::read(fd_, block_->bytes.data() + left, wanted);
    const std::size_t got = count > 0 ? static_cast<std::size_t>(count) : 0;
    block_->bytes.resize(left + got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      diagnostics_->add_finding(Damage::CutShort, offset_ + left, system_error("read", errno).what);
    // The writer closed the pipe.
    if (count <= 0 && ends_unknown()) grows_ = false;
    if (count <= 0) break;
    left += got;
    chunk_ = std::min(kChunk, 4 * chunk_);
    if (!ends_unknown()) unread_ -= got;
  }
  return left >= size;
}

// Whether a read would return at once. Only a pipe that is followed (--follow) must not be waited for.
bool ByteWindow::may_read() const {
  if (!grows_ || !ends_unknown()) return true;
  pollfd pipe{fd_, POLLIN, 0};
  return ::poll(&pipe, 1, 0) > 0;
}

bool ByteWindow::skip_hole() {
  const Bytes left = bytes();
  if (ends_unknown() || grows_ || std::ranges::count(left, std::byte{0}) != std::ssize(left)) return false;
  std::uint64_t hole = std::min(hole_ahead(fd_), unread_);
  hole -= std::min<std::uint64_t>(hole, kRecordHeaderSize);
  if (hole == 0 || ::lseek(fd_, static_cast<off_t>(hole), SEEK_CUR) < 0) return false;
  unread_ -= hole;
  offset_ += left.size() + hole;
  at_ = block_->bytes.size();
  return true;
}

std::optional<std::uint64_t> ByteWindow::left_in_file() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const off_t at = ::lseek(fd_, 0, SEEK_CUR);
  if (at < 0) return std::nullopt;
  const auto unread = static_cast<std::uint64_t>(std::max<off_t>(status.st_size - at, 0));
  return bytes().size() + std::min(unread, unread_);
}

std::vector<std::byte> ByteWindow::peek(std::uint64_t ahead, std::size_t size) const {
  const off_t at = ::lseek(fd_, 0, SEEK_CUR);
  auto bytes_there = read_at(fd_, static_cast<std::uint64_t>(at) - bytes().size() + ahead, size);
  return at >= 0 && bytes_there ? std::move(*bytes_there) : std::vector<std::byte>{};
}

std::uint64_t ByteWindow::step_over(std::uint64_t size) {
  const auto in_file = left_in_file();
  std::uint64_t left = size - std::min<std::uint64_t>(size, bytes().size());
  skip(static_cast<std::size_t>(size - left));
  if (left > 0 && in_file) {
    const std::uint64_t further = std::min(left, *in_file - (size - left));
    if (::lseek(fd_, static_cast<off_t>(further), SEEK_CUR) < 0) return size - left;
    offset_ += further;
    chunk_ = kFirstChunk;
    if (!ends_unknown()) unread_ -= further;
    return size - left + further;
  }
  while (left > 0 && ensure(1)) {
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes().size()));
    skip(some);
    left -= some;
  }
  return size - left;
}

void ByteWindow::release() {
  offset_ += bytes().size();
  block_ = std::make_shared<Block>();
  at_ = 0;
  used_.clear();
  oldest_used_ = 0;
}

}  // namespace tacho::format
