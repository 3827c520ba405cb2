// Keeps texts for good, one behind the other in large pieces: no allocation for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace tacho::report {

class TextStore {
 public:
  // A copy that stays where it is.
  std::string_view keep(std::string_view text) {
    if (text.size() > left_) {
      left_ = std::max(text.size(), kPiece);
      pieces_.push_back(std::make_unique_for_overwrite<char[]>(left_));
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
  static constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes
  std::vector<std::unique_ptr<char[]>> pieces_;
  char* free_ = nullptr;
  std::size_t left_ = 0, size_ = 0;
};

}  // namespace tacho::report
