// Keeps texts for good, one behind the other in large pieces: no allocation for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "format/base/large_pages.h"

namespace tacho::report {

class TextStore {
 public:
  // A copy that stays where it is.
  std::string_view keep(std::string_view text) {
    if (text.size() > left_) {
      left_ = std::max(text.size(), pieces_.size() < kSmallPieces ? kSmallPiece : 2 * format::kLargePage);
      pieces_.push_back(format::make_large_piece<char>(left_));
      free_ = pieces_.back().get();
    }
    char* const to = free_;
    text.copy(to, text.size());
    free_ += text.size();
    left_ -= text.size();
    size_ += text.size();
    return {to, text.size()};
  }
  std::size_t size() const { return size_; }  // bytes of all texts

 private:
  static constexpr std::size_t kSmallPiece = std::size_t{1} << 16;  // bytes
  static constexpr std::size_t kSmallPieces = 16;                   // then large pages are worth it
  std::vector<format::LargePiece<char>> pieces_;
  char* free_ = nullptr;
  std::size_t left_ = 0, size_ = 0;
};

}  // namespace tacho::report
