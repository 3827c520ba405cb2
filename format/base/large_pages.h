// Allocator for the few tables that grow with a capture. Large allocations ask for transparent huge pages
// (MADV_HUGEPAGE), since a page fault for each 4 KiB costs more than filling the page.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace tacho::format {

inline constexpr std::size_t kLargePage = std::size_t{2} << 20;  // bytes
// Distance between data of different threads, against false sharing: cache lines have 64 bytes, and the
// prefetcher fetches them in pairs.
inline constexpr std::size_t kApart = 128;  // bytes

// Uses std::malloc for less than a large page. Null: no memory. Free it with std::free.
inline void* large_memory(std::size_t bytes) noexcept {
  if (bytes < kLargePage) return std::malloc(bytes);
  if (bytes > PTRDIFF_MAX - kLargePage) return nullptr;
  const std::size_t rounded = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  void* const memory = std::aligned_alloc(kLargePage, rounded);
  if (memory != nullptr) ::madvise(memory, rounded, MADV_HUGEPAGE);  // may fail: only an optimization
  return memory;
}

template <class T>
struct LargePages {
  using value_type = T;
  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) noexcept {}
  T* allocate(std::size_t count) {
    if (count > ~std::size_t{0} / sizeof(T)) throw std::bad_array_new_length();
    void* const memory = large_memory(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }
  bool operator==(const LargePages&) const = default;
};

struct FreeMemory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
template <class T>
using LargePiece = std::unique_ptr<T[], FreeMemory>;

// An array that is not cleared.
template <class T>
LargePiece<T> make_large_piece(std::size_t count) {
  return LargePiece<T>(LargePages<T>().allocate(count));
}

}  // namespace tacho::format
