#include "symbolize/files/file_ahead.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "format/base/file.h"

namespace tacho::symbolize {

FileAhead::FileAhead(std::string path, std::uint64_t limit) : path_(std::move(path)), limit_(limit) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  } catch (const std::system_error&) {
    thread_ = {};
  }
}

// What is stopped is never asked for.
void FileAhead::read(const std::stop_token& stop) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;  // bytes
  auto file = format::open_input(path_);
  if (!file) return end(std::move(file.error()));
  std::vector<std::byte> room(kPiece);
  std::uint64_t all = 0;
  for (std::size_t filled = 0; !stop.stop_requested();) {
    const ssize_t count = ::read(file->get(), room.data() + filled, room.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return end(system_error(path_, errno));
    filled += static_cast<std::size_t>(count);
    all += static_cast<std::uint64_t>(count);
    if (all > limit_) {
      return end(Error{path_ + ": larger than the " + std::to_string(limit_) +
                       " bytes that are read of such a file"});
    }
    const bool is_end = count == 0;
    if (filled == room.size() || (is_end && filled > 0)) {
      put(Content(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(filled)));
      filled = 0;
    }
    if (is_end) return end(Done{});
  }
}

void FileAhead::put(Content piece) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
  }
  changed_.notify_one();
}

void FileAhead::end(Result<> how) {
  {
    const std::lock_guard lock(mutex_);
    how_ = std::move(how);
    has_ended_ = true;
  }
  changed_.notify_one();
}

Result<FileAhead::Content> FileAhead::next() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    if (std::exchange(has_ended_, true)) return Content();
    return format::read_file(path_, limit_);
  }
  changed_.wait(lock, [this] { return !pieces_.empty() || has_ended_; });
  if (pieces_.empty()) {
    if (!how_) return std::move(how_.error());
    return Content();
  }
  Content piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

}  // namespace tacho::symbolize
