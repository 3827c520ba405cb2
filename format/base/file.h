// File descriptors and memory mappings that close themselves, and reading and writing of whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::format {

// An open file descriptor; closed when destroyed.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

// A memory mapping; unmapped when destroyed.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

// Opens for reading: a regular file, or also a FIFO when `allow_stream`. Never blocks on a FIFO or device it
// was not asked for. The error names the path and the reason.
enum class Streams : std::uint8_t { Refuse, Allow };
Result<Fd> open_input(const std::string& path, Streams streams = Streams::Refuse);

// The whole of a regular file, at most `limit` bytes; also /proc and /sys files, whose size is not known.
Result<std::vector<std::byte>> read_file(const std::string& path,
                                         std::uint64_t limit = std::uint64_t{1} << 30);
// At most `size` bytes from `offset`; fewer only at the end of the file.
Result<std::vector<std::byte>> read_at(int fd, std::uint64_t offset, std::size_t size);
// The length of the hole (SEEK_DATA) at the descriptor's position, in bytes; 0: no hole, or the file system
// does not support it. The position stays.
std::uint64_t hole_ahead(int fd);
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Writes all of `bytes` at `offset`.
Result<> write_at(int fd, std::uint64_t offset, Bytes bytes);

}  // namespace tacho::format
