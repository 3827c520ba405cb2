// Hash table from (address space, address) to the number of a location. Every frame of every new call chain
// is looked up in it, so keys are stored in the table itself and a lookup touches one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "report/samples/index_table.h"

namespace tacho::report {

class AddressTable {
 public:
  // The number kept for `ip` in `space`; when there is none, the one that make() returns, kept from now on.
  template <class Make>
  std::uint32_t find_or_make(std::uint32_t space, std::uint64_t ip, Make&& make) {
    const std::uint64_t hash = hash_of(space, ip);
    if (!slots_.empty()) {
      const Slot& slot = slots_[place_of(hash, space, ip)];
      if (slot.number != IndexTable::kNone) return slot.number;
    }
    const std::uint32_t number = make();
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    slots_[place_of(hash, space, ip)] = {ip, space, number};
    ++count_;
    return number;
  }

  // The number kept for it; kNone: there is none.
  std::uint32_t find(std::uint32_t space, std::uint64_t ip) const {
    return slots_.empty() ? IndexTable::kNone : slots_[place_of(hash_of(space, ip), space, ip)].number;
  }

  std::size_t size() const { return count_; }
  // Gives its memory back. From then on every address is new.
  void forget() {
    Slots().swap(slots_);
    count_ = 0;
  }

  // Prefetches a key's slot: chains look up many keys at once.
  void prefetch(std::uint32_t space, std::uint64_t ip) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash_of(space, ip) & (slots_.size() - 1)]);
  }

 private:
  struct Slot {
    std::uint64_t ip = 0;
    std::uint32_t space = 0;
    std::uint32_t number = IndexTable::kNone;
  };
  using Slots = std::vector<Slot, format::LargePages<Slot>>;
  // Captures choose both numbers, and spaces are numbered one by one: with a fixed factor, or with spaces and
  // addresses merely joined by XOR, many keys could be made to fall into one place.
  std::uint64_t hash_of(std::uint32_t space, std::uint64_t ip) const {
    return format::fold_product(ip + space * space_factor_, factor_);
  }
  // Where the key is, or would be put.
  std::size_t place_of(std::uint64_t hash, std::uint32_t space, std::uint64_t ip) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != IndexTable::kNone && (slots_[at].ip != ip || slots_[at].space != space))
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    Slots old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != IndexTable::kNone)
        slots_[place_of(hash_of(slot.space, slot.ip), slot.space, slot.ip)] = slot;
    }
  }
  std::uint64_t space_factor_ = format::random_word(), factor_ = format::random_word() | 1;
  Slots slots_;
  std::size_t count_ = 0;
};

}  // namespace tacho::report
