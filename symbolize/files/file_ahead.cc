#include "symbolize/files/file_ahead.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "format/file.h"

namespace tacho::symbolize {

FileAhead::FileAhead(std::string path, std::uint64_t limit) : path_(std::move(path)), limit_(limit) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  } catch (const std::system_error&) {
    thread_ = {};
  }
}

// What is stopped is never taken.
void FileAhead::read(const std::stop_token& stop) {
  auto file = format::open_input(path_);
  if (!file) {
    content_ = std::move(file.error());
    return;
  }
  std::vector<std::byte>& content = *content_;
  std::vector<std::byte> piece(std::size_t{64} << 10);
  while (!stop.stop_requested()) {
    const ssize_t count = ::read(file->get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return;
    if (count < 0) {
      content_ = system_error(path_, errno);
      return;
    }
    content.insert(content.end(), piece.begin(), piece.begin() + count);
    if (content.size() > limit_) {
      content_ = Error{path_ + ": larger than the " + std::to_string(limit_) +
                       " bytes that are read of such a file"};
      return;
    }
  }
}

Result<std::vector<std::byte>> FileAhead::take() {
  if (!thread_.joinable()) return format::read_file(path_, limit_);
  thread_.join();
  return std::move(content_);
}

}  // namespace tacho::symbolize
