// ByNumber: an array with a value for each place or stack, by its number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/large_pages.h"

namespace tacho::report {

// Grows to the highest number used. Unused values are not written, since page faults would cost more than
// everything else here.
template <class T>
class ByNumber {
 public:
  // `none`: what stands where nothing was kept yet.
  explicit ByNumber(T none = {}) : none_(none) {}

  // Valid until another number is asked for.
  T& operator[](std::uint32_t number) {
    if (number >= items_.size()) grow(number);
    return items_[number];
  }
  T find(std::uint32_t number) const { return number < items_.size() ? items_[number] : none_; }
  void prefetch(std::uint32_t number) const {
    if (number < items_.size()) __builtin_prefetch(&items_[number]);
  }
  // Gives its memory back.
  void forget() { Items().swap(items_); }

 private:
  using Items = std::vector<T, format::LargePages<T>>;
  [[gnu::cold]] void grow(std::size_t number) {
    constexpr std::size_t kMore = 1024, kMost = std::size_t{1} << 32;  // items
    if (number >= items_.capacity()) items_.reserve(std::clamp(items_.capacity() * 2, number + 1, kMost));
    items_.resize(std::min(number + kMore, items_.capacity()), none_);
  }
  T none_;
  Items items_;
};

}  // namespace tacho::report
