#include "format/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tacho::format {
namespace {

// Appends `wanted` bytes to `out`, or all up to the end. `read`: read(2) or pread(2), after `got` bytes.
template <class Read>
Result<> append_read(std::size_t wanted, std::vector<std::byte>& out, Read&& read) {
  const std::size_t start = out.size();
  out.resize(start + wanted);
  std::size_t got = 0;
  while (got < wanted) {
    const ssize_t count = read(out.data() + start + got, wanted - got, got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  out.resize(start + got);
  return Done{};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) ::close(number_);
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

Fd::~Fd() {
  if (number_ >= 0) ::close(number_);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    if (address_ != nullptr) ::munmap(address_, size_);
    address_ = std::exchange(other.address_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

Result<Fd> open_input(const std::string& path, Streams streams) {
  // O_NONBLOCK: opening a FIFO without a writer must not block. The flag is cleared again below.
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return system_error(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(path, errno);
  if (S_ISDIR(status.st_mode)) return Error{path + ": is a directory", EISDIR};
  if (S_ISREG(status.st_mode)) return file;
  if (streams == Streams::Refuse) return Error{path + ": is not a regular file", EINVAL};
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t limit) {
  auto file = open_input(path);
  if (!file) return std::move(file.error());
  std::vector<std::byte> content;
  constexpr std::size_t kStep = 256 * 1024;  // for /proc files, whose size is unknown
  constexpr std::uint64_t kMostAhead = std::uint64_t{16} << 20;
  struct stat status {};
  if (::fstat(file->get(), &status) == 0 && status.st_size > 0)
    content.reserve(std::min({static_cast<std::uint64_t>(status.st_size), limit, kMostAhead}) + kStep);
  for (;;) {
    const std::size_t before = content.size();
    auto read = append_read(kStep, content, [&](std::byte* to, std::size_t size, std::size_t) {
      return ::read(file->get(), to, size);
    });
    if (!read) return std::move(read.error()).in(path);
    if (content.size() > limit)
      return Error{path + ": larger than the limit of " + std::to_string(limit) + " bytes"};
    if (content.size() - before < kStep) return content;
  }
}

std::uint64_t hole_ahead(int fd) {
  const off_t from = ::lseek(fd, 0, SEEK_CUR);
  if (from < 0) return 0;
  off_t data = ::lseek(fd, from, SEEK_DATA);
  if (data < 0 && errno == ENXIO) data = ::lseek(fd, 0, SEEK_END);  // the hole extends to the end
  (void)::lseek(fd, from, SEEK_SET);
  return data > from ? static_cast<std::uint64_t>(data - from) : 0;
}

Result<std::vector<std::byte>> read_at(int fd, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> content;
  auto read = append_read(size, content, [&](std::byte* to, std::size_t left, std::size_t got) {
    return ::pread(fd, to, left, static_cast<off_t>(offset + got));
  });
  if (!read) return std::move(read.error());
  return content;
}

Result<> write_at(int fd, std::uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return output_system_error("write", errno);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return Done{};
}

}  // namespace tacho::format
