// Texts of places by their numbers, made once while there is room for them. Inlined calls make a place's
// text as long as a file of debugging information likes: 1.6 MB of capture had 2 GB of texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "report/output/text_output.h"
#include "report/samples/by_number.h"

namespace tacho::report {

class KeptTexts {
 public:
  explicit KeptTexts(std::size_t most_bytes = std::size_t{64} << 20) : most_bytes_(most_bytes) {}

  // Without data: not kept. Both are valid until the next keep().
  std::string_view find(std::uint32_t number) const { return texts_.find(number); }
  // Forgets all others when they are too many: they are made again when they come again.
  std::string_view keep(std::uint32_t number, std::string_view text) {
    if (store_.size() + text.size() > most_bytes_) {
      texts_.forget();
      store_ = {};
    }
    return texts_[number] = store_.keep(text);
  }
  std::size_t size() const { return store_.size(); }  // bytes

 private:
  std::size_t most_bytes_;
  ByNumber<std::string_view> texts_;
  TextStore store_;
};

}  // namespace tacho::report
