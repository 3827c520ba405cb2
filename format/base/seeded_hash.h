// Hash functions with a random seed for each table. Keys come from captures (ids, pids, addresses): without a
// seed, a made-up capture could choose keys that all collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacho::format {

// A random number from the kernel, or, if that fails, from the clock and an address.
std::uint64_t random_word();

// Both halves of the product of two words: every bit of the result depends on most bits of both.
inline std::uint64_t fold_product(std::uint64_t one, std::uint64_t other) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(one) * other;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// For std::unordered_map and tsl::robin_map with numbers as keys.
class SeededHash {
 public:
  SeededHash() : seed_(random_word()), factor_(random_word() | 1) {}
  std::size_t operator()(std::uint64_t number) const { return fold_product(number ^ seed_, factor_); }

 private:
  std::uint64_t seed_, factor_;
};

// The same for texts.
class SeededTextHash {
 public:
  SeededTextHash() : seed_(random_word()), factor_(random_word() | 1) {}
  std::size_t operator()(std::string_view text) const {
    std::uint64_t hash = seed_ ^ text.size();
    for (; text.size() > sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t)))
      hash = fold_product(hash ^ word_of(text), factor_);
    return fold_product(fold_product(hash ^ word_of(text), factor_) ^ seed_, factor_);
  }

 private:
  static std::uint64_t word_of(std::string_view text) {  // its first eight bytes, zeros after a shorter one
    std::uint64_t word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), text.size() < sizeof word ? text.size() : sizeof word);
    return word;
  }
  std::uint64_t seed_, factor_;
};

}  // namespace tacho::format
