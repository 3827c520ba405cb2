// Hash table of indexes into an array of the caller, which compares the items.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"

namespace tacho::report {

// Hashes of rows of numbers. Captures choose the numbers, and many are counted one by one: joined by XOR, or
// with factors that anyone can read here, many rows could be made to fall into one place.
class RowHash {
 public:
  template <std::integral... Words>
  std::uint64_t operator()(Words... words) const {
    std::uint64_t hash = seed_;
    ((hash = add(hash, static_cast<std::uint64_t>(words))), ...);
    return hash;
  }
  // One word more; begin with any number, the row's length say.
  std::uint64_t add(std::uint64_t hash, std::uint64_t word) const {
    return format::fold_product(hash + word * spread_, factor_);
  }

 private:
  std::uint64_t seed_ = format::random_word();
  std::uint64_t spread_ = format::random_word() | 1, factor_ = format::random_word() | 1;
};

class IndexTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Of this table's keys.
  const RowHash hash{};

  // Gives its memory back. From then on every item is new.
  void forget() {
    Slots().swap(slots_);
    count_ = 0;
  }

  // Prefetches a hash's slot, for callers that look up many.
  void prefetch(std::uint64_t hashed) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[(hashed >> 32) & (slots_.size() - 1)]);
  }
  // A number that may be the one with this hash, to be fetched as well; kNone: there is none.
  std::uint32_t guess(std::uint64_t hashed) const {
    return slots_.empty() ? kNone : slots_[(hashed >> 32) & (slots_.size() - 1)].number;
  }

  // The number with this hash for which same(number) holds. When there is none, make() appends the new item
  // to the array and returns its number.
  template <class Same, class Make>
  std::uint32_t find_or_make(std::uint64_t hashed, Same&& same, Make&& make) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    const auto tag = static_cast<std::uint32_t>(hashed >> 32);
    for (std::size_t at = tag & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].number == kNone) {
        const std::uint32_t number = make();
        slots_[at] = {number, tag};
        ++count_;
        return number;
      }
      if (slots_[at].tag == tag && same(slots_[at].number)) return slots_[at].number;
    }
  }

 private:
  struct Slot {
    std::uint32_t number = kNone;
    std::uint32_t tag = 0;  // half of the hash: where it belongs, and what tells most others apart
  };
  using Slots = std::vector<Slot, format::LargePages<Slot>>;
  void grow() {
    Slots old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      std::size_t at = slot.tag & (slots_.size() - 1);
      while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  Slots slots_;
  std::size_t count_ = 0;
};

}  // namespace tacho::report
