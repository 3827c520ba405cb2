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

// Opens for reading: a regular file, or with Streams::Allow also a FIFO. Never blocks. The error names the
// path.
enum class Streams : std::uint8_t { Refuse, Allow };
Result<Fd> open_input(const std::string& path, Streams streams = Streams::Refuse);

// Reads a regular file (also of /proc or /sys) of at most `limit` bytes.
Result<std::vector<std::byte>> read_file(const std::string& path,
                                         std::uint64_t limit = std::uint64_t{1} << 30);
// At most `size` bytes from `offset`; fewer only at the end of the file.
Result<std::vector<std::byte>> read_at(int fd, std::uint64_t offset, std::size_t size);
// The size in bytes of the hole (SEEK_DATA) at the descriptor's position; 0: none, or not supported. Does not
// move the position.
std::uint64_t hole_ahead(int fd);
// Writes all of `bytes` at `offset`.
Result<> write_at(int fd, std::uint64_t offset, Bytes bytes);

}  // namespace tacho::format
