#include "format/container/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "format/container/file_head.h"

namespace tacho::format {
namespace {

// The lock is on one byte far after the end of any capture: other programs may lock the capture's bytes.
struct flock mark(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = (off_t{1} << 62) - 1;
  lock.l_len = 1;
  return lock;
}

enum class Mark : std::uint8_t { Held, Free, Unknown };

Mark look_at_mark(int fd) {
  struct flock lock = mark(F_RDLCK);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return Mark::Unknown;
  return lock.l_type == F_UNLCK ? Mark::Free : Mark::Held;
}

}  // namespace

void hold_for_writing(int fd) {
  struct flock lock = mark(F_WRLCK);
  static_cast<void>(::fcntl(fd, F_OFD_SETLK, &lock));
}

// The lock first, the size second: so all that a recorder wrote before it died is seen.
std::uint64_t GrowingFile::data_end() {
  const Mark mark_now = look_at_mark(fd_);
  struct stat status {};
  const std::uint64_t size = ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  const auto start = read_at(fd_, 0, FileHead::kSize);
  const auto head = start ? parse_file_head(*start) : Result<FileHead>(Error{"unreadable"});
  if (!head) {
    end_ = Following::End::Died;
    return data_offset_;
  }
  std::optional<EarlyTable> early;
  if (data_offset_ >= EarlyTable::kTrailerSize) {
    const auto trailer = read_at(fd_, data_offset_ - EarlyTable::kTrailerSize, EarlyTable::kTrailerSize);
    if (trailer) early = parse_early_trailer(*trailer, head->order);
  }
  const bool is_closed = early ? early->is_closed : head->data.size != 0;
  if (is_closed) {
    end_ = Following::End::Closed;
  } else if (mark_now == Mark::Free && (was_held_ || early)) {
    // tacho locks the file before it writes the header: a header without a lock means that the recorder
    // ended.
    end_ = Following::End::Died;
  }
  was_held_ = was_held_ || mark_now == Mark::Held;
  const std::uint64_t before = std::exchange(size_before_, size);
  // Other recorders write the data size when they close the file, and feature sections after the data
  // shortly before. So only bytes that were there at the previous look are data.
  const std::uint64_t end = head->data.size != 0 || early ? data_offset_ + head->data.size : before;
  return std::clamp(end, data_offset_, std::max(size, data_offset_));
}

}  // namespace tacho::format
