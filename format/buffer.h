// Bytes that are about to be overwritten: an array whose growth does not clear them first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "format/cursor.h"

namespace tacho::format {

// No std::vector with an allocator that leaves bytes as they are: it visits each of them whenever it grows or
// shrinks, and a compiler that does not optimize, or a sanitizer, makes that take longer than all else here.
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
  // Bytes that are new have any value.
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
  // What there is then stands `at` bytes behind the start.
  void move_to(std::size_t capacity, std::size_t at) {
    auto memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ > 0) std::memcpy(memory.get() + at, memory_.get(), size_);
    memory_ = std::move(memory);
    capacity_ = capacity;
  }

  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace tacho::format
