// A growing array of bytes that does not clear new bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "format/base/cursor.h"

namespace tacho::format {

// Why not std::vector: with an allocator that does not set new bytes, it still runs a loop over them whenever
// it grows or shrinks. An optimizing compiler removes that loop; without optimization, or with a sanitizer,
// the loop takes longer than all other work on a capture.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

  void clear() { size_ = 0; }
  void reserve(std::size_t capacity) {
    if (capacity > capacity_) move_to(capacity, 0);
  }
  // New bytes have unspecified values.
  void resize(std::size_t size) {
    if (size > capacity_) move_to(std::max(size, 2 * capacity_), 0);
    size_ = size;
  }
  void append(Bytes more) {
    const std::size_t before = size_;
    resize(size_ + more.size());
    if (!more.empty()) std::memcpy(data() + before, more.data(), more.size());
  }
  void prepend(Bytes more) {
    if (more.empty()) return;
    move_to(size_ + more.size(), more.size());
    std::memcpy(data(), more.data(), more.size());
    size_ += more.size();
  }

 private:
  // Reallocates to `capacity` bytes; the content then begins at offset `at`.
  void move_to(std::size_t capacity, std::size_t at) {
    // For large content realloc() remaps pages instead of copying.
    const bool stays_first = at == 0 && size_ > 0;
    void* const memory = stays_first ? std::realloc(memory_.get(), capacity) : std::malloc(capacity);
    if (memory == nullptr) throw std::bad_alloc();
    if (stays_first) {
      (void)memory_.release();
    } else if (size_ > 0) {
      std::memcpy(static_cast<std::byte*>(memory) + at, memory_.get(), size_);
    }
    memory_.reset(static_cast<std::byte*>(memory));
    capacity_ = capacity;
  }

  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Bytes of a capture to which records point, shared by all records in use.
struct Block {
  Buffer bytes;
  // Compressed size in the capture; 0: it was not compressed.
  std::size_t packed = 0;
};
using BlockRef = std::shared_ptr<const Block>;

}  // namespace tacho::format
