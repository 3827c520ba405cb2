// An array that grows at its end and never moves: one thread appends while others read items that are
// complete.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "format/base/large_pages.h"

namespace tacho::report {

template <class T>
class StableArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  const T& operator[](std::size_t index) const {
    const Place place = place_of(index);
    return pieces_[place.piece][place.at];
  }
  T& operator[](std::size_t index) {  // for the appending thread, while no other reads the item
    const Place place = place_of(index);
    return pieces_[place.piece][place.at];
  }
  std::size_t size() const { return size_; }
  const T& push_back(const T& item) {
    const Place place = place_of(size_++);
    auto& piece = pieces_[place.piece];
    if (!piece) piece = format::make_large_piece<T>(kFirst << place.piece);
    return *::new (static_cast<void*>(&piece[place.at])) T(item);
  }

 private:
  struct Place {
    std::size_t piece, at;
  };
  // Piece n holds kFirst << n items.
  static constexpr std::size_t kFirst = 1024, kFirstBits = 10;
  static Place place_of(std::size_t index) {
    const std::size_t piece = static_cast<std::size_t>(std::bit_width(index + kFirst)) - 1 - kFirstBits;
    return {piece, index + kFirst - (kFirst << piece)};
  }
  std::size_t size_ = 0;
  alignas(
      format::kApart) std::array<format::LargePiece<T>, 64 - kFirstBits> pieces_;  // apart from what changes
};

}  // namespace tacho::report
