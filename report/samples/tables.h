// Hash tables and arrays of report/samples and report/profile.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "report/samples/ids.h"

namespace tacho::report {

template <class T>
concept Word = std::integral<T> || std::is_enum_v<T>;

// Hashes tuples of integers with random factors: the integers come from the capture, whose maker could
// otherwise construct collisions.
class RowHash {
 public:
  template <Word... Words>
  std::uint64_t operator()(Words... words) const {
    std::uint64_t hash = seed_;
    ((hash = add(hash, words)), ...);
    return hash;
  }
  // Adds a word. The first `hash` may be any number, e.g. the length of the sequence.
  std::uint64_t add(std::uint64_t hash, Word auto word) const {
    return format::fold_product(hash + static_cast<std::uint64_t>(word) * word_factor_, factor_);
  }

 private:
  std::uint64_t seed_ = format::random_word();
  std::uint64_t word_factor_ = format::random_word() | 1, factor_ = format::random_word() | 1;
};

// Open-addressing hash table of ids of items in the caller's array; the caller compares the items.
template <class Id = std::uint32_t>
class IndexTable {
 public:
  // Computes the hashes to pass to this table.
  const RowHash hash{};

  // Empties the table and frees its memory.
  void forget() {
    Slots().swap(slots_);
    count_ = 0;
  }

  // The number with this hash for which same(number) is true; kNo: there is none.
  template <class Same>
  Id find(std::uint64_t hashed, Same&& same) const {
    if (slots_.empty()) return kNo<Id>;
    const auto tag = static_cast<std::uint32_t>(hashed >> 32);
    for (std::size_t at = tag & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].number == kNo<Id>) return kNo<Id>;
      if (slots_[at].tag == tag && same(slots_[at].number)) return slots_[at].number;
    }
  }

  // The number with this hash for which same(number) is true. If there is none, make() appends the item to
  // the caller's array and returns its number.
  template <class Same, class Make>
  Id find_or_make(std::uint64_t hashed, Same&& same, Make&& make) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    const auto tag = static_cast<std::uint32_t>(hashed >> 32);
    for (std::size_t at = tag & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].number == kNo<Id>) {
        const Id number = make();
        slots_[at] = {number, tag};
        ++count_;
        return number;
      }
      if (slots_[at].tag == tag && same(slots_[at].number)) return slots_[at].number;
    }
  }

 private:
  struct Slot {
    Id number = kNo<Id>;
    std::uint32_t tag = 0;  // half of the hash: decides the slot, and is compared before the item
  };
  using Slots = std::vector<Slot, format::LargePages<Slot>>;
  void grow() {
    Slots old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kNo<Id>) continue;
      std::size_t at = slot.tag & (slots_.size() - 1);
      while (slots_[at].number != kNo<Id>) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  Slots slots_;
  std::size_t count_ = 0;
};

// Hash table from (32-bit id, 64-bit address) to a number of type Id. Every frame of every new call chain
// is looked up in it, so keys are stored in the table itself and a lookup touches one cache line.
template <class Id>
class AddressTable {
 public:
  // The number of `ip` in `space`. If there is none, make() returns the new one.
  template <class Make>
  Id find_or_make(std::uint32_t space, std::uint64_t ip, Make&& make) {
    const std::uint64_t hash = hash_of(space, ip);
    if (!slots_.empty()) {
      const Slot& slot = slots_[slot_of(hash, space, ip)];
      if (slot.number != kNo<Id>) return slot.number;
    }
    const Id number = make();
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    slots_[slot_of(hash, space, ip)] = {ip, space, number};
    ++count_;
    return number;
  }

  // kNo: there is none.
  Id find(std::uint32_t space, std::uint64_t ip) const {
    return slots_.empty() ? kNo<Id> : slots_[slot_of(hash_of(space, ip), space, ip)].number;
  }

  std::size_t size() const { return count_; }
  // Empties the table and frees its memory.
  void forget() {
    Slots().swap(slots_);
    count_ = 0;
  }

 private:
  struct Slot {
    std::uint64_t ip = 0;
    std::uint32_t space = 0;
    Id number = kNo<Id>;
  };
  using Slots = std::vector<Slot, format::LargePages<Slot>>;
  // As in RowHash, factors are random: a capture chooses both numbers.
  std::uint64_t hash_of(std::uint32_t space, std::uint64_t ip) const {
    return format::fold_product(ip + space * space_factor_, factor_);
  }
  // Where the key is, or belongs.
  std::size_t slot_of(std::uint64_t hash, std::uint32_t space, std::uint64_t ip) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != kNo<Id> && (slots_[at].ip != ip || slots_[at].space != space))
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    Slots old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNo<Id>) slots_[slot_of(hash_of(slot.space, slot.ip), slot.space, slot.ip)] = slot;
    }
  }
  std::uint64_t space_factor_ = format::random_word(), factor_ = format::random_word() | 1;
  Slots slots_;
  std::size_t count_ = 0;
};

// An array that grows at its end and never moves: one thread appends; others may read items whose number they
// got with synchronization.
template <class T, class Id = std::size_t>
class StableArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  const T& operator[](Id id) const {
    const Position position = position_of(index_of(id));
    return pieces_[position.piece][position.at];
  }
  T& operator[](Id id) {  // only for the appending thread, and only before others can read the item
    const Position position = position_of(index_of(id));
    return pieces_[position.piece][position.at];
  }
  std::size_t size() const { return size_; }
  Id next_id() const { return id_of<Id>(size_); }
  Ids<Id> ids() const { return {size_}; }
  Id push_back(const T& item) {
    const Position position = position_of(size_);
    auto& piece = pieces_[position.piece];
    if (!piece) piece = format::make_large_piece<T>(kFirst << position.piece);
    ::new (static_cast<void*>(&piece[position.at])) T(item);
    return id_of<Id>(size_++);
  }

 private:
  struct Position {
    std::size_t piece, at;
  };
  // Piece n holds kFirst << n items.
  static constexpr std::size_t kFirst = 1024, kFirstBits = 10;
  static Position position_of(std::size_t index) {
    const std::size_t piece = static_cast<std::size_t>(std::bit_width(index + kFirst)) - 1 - kFirstBits;
    return {piece, index + kFirst - (kFirst << piece)};
  }
  std::size_t size_ = 0;
  alignas(format::kApart)
      std::array<format::LargePiece<T>,
                 64 - kFirstBits> pieces_;  // on its own cache lines: size_ changes while others read this
};

// Copies lists into large blocks, without an allocation for each. Copies have stable addresses.
template <class T>
class ListStore {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::span<T> keep(std::span<const T> list) {
    if (list.empty()) return {};
    if (list.size() > left_) {
      left_ = std::max(list.size(), pieces_.empty() ? kFirst : kPiece);
      pieces_.push_back(format::make_large_piece<T>(left_));
      free_ = pieces_.back().get();
    }
    const std::span<T> kept(free_, list.size());
    std::ranges::copy(list, kept.begin());
    free_ += list.size();
    left_ -= list.size();
    bytes_ += list.size_bytes();
    return kept;
  }
  std::size_t bytes() const { return bytes_; }  // of all lists

 private:
  // Items allocated at a time: few for a small capture, then large pages.
  static constexpr std::size_t kFirst = std::size_t{1} << 15, kPiece = 2 * format::kLargePage / sizeof(T);
  std::vector<format::LargePiece<T>> pieces_;
  T* free_ = nullptr;     // in the last piece
  std::size_t left_ = 0;  // items from there on
  std::size_t bytes_ = 0;
};

// Distinct lists, by numbers from 0 up. Lists have stable addresses.
template <class Id, Word T>
class DistinctLists {
 public:
  Id id_of(std::span<const T> list) {
    std::uint64_t hash = list.size();
    for (const T item : list) hash = by_items_.hash.add(hash, item);
    return by_items_.find_or_make(
        hash, [&](Id known) { return std::ranges::equal(lists_[known], list); },
        [&] { return lists_.push_back(store_.keep(list)); });
  }
  std::span<const T> operator[](Id id) const { return lists_[id]; }
  std::size_t size() const { return lists_.size(); }
  std::size_t bytes() const { return store_.bytes(); }  // of all lists
  // Frees the look-up table: no list is added afterwards.
  void end_lookups() { by_items_.forget(); }

 private:
  IndexTable<Id> by_items_;
  StableArray<std::span<const T>, Id> lists_;
  ListStore<T> store_;
};

// A std::vector by ids.
template <class Id, class T>
class IdVector {
 public:
  T& operator[](Id id) { return items_[index_of(id)]; }
  const T& operator[](Id id) const { return items_[index_of(id)]; }
  bool has(Id id) const { return index_of(id) < items_.size(); }
  Id push_back(const T& item) {
    items_.push_back(item);
    return id_of<Id>(items_.size() - 1);
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  Ids<Id> ids() const { return {items_.size()}; }
  void clear() { items_.clear(); }
  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size, const T& item = {}) { items_.resize(size, item); }

 private:
  std::vector<T, format::LargePages<T>> items_;
};

// An array with a value for each number of a kind. It grows by 1,024 items above the highest
// number used, not by doubling: the reserved rest is not written, which saves page faults.
template <class Id, class T>
class IdMap {
 public:
  // `none`: the value of numbers that were not set.
  explicit IdMap(T none = {}) : none_(none) {}

  // Valid until the next call.
  T& operator[](Id id) {
    if (index_of(id) >= items_.size()) grow(index_of(id));
    return items_[index_of(id)];
  }
  T find(Id id) const { return index_of(id) < items_.size() ? items_[index_of(id)] : none_; }
  // Empties it and frees its memory.
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

// Hash table from keys to numbers from 0 up. It has few memory blocks, so that all of it can be freed: a
// capture may have millions of modules.
template <class Id, class Key>
class KeyNumbers {
 public:
  // Computes hashes of integers for number_of().
  const RowHash& hash() const { return by_hash_.hash; }
  // `hashed`: a hash of the key alone.
  Id number_of(std::uint64_t hashed, const Key& key) {
    return by_hash_.find_or_make(
        hashed, [&](Id known) { return keys_[known] == key; }, [&] { return keys_.push_back(key); });
  }
  const Key& operator[](Id id) const { return keys_[id]; }
  // Frees its memory.
  void forget() {
    by_hash_.forget();
    keys_ = {};
  }

 private:
  IndexTable<Id> by_hash_;
  IdVector<Id, Key> keys_;
};

// The item for which same(item) is true; if there is none, `item` is added. `table` has the indices of
// `items` by `hash`.
template <class Items, class Same>
typename Items::value_type& find_or_add(IndexTable<>& table, std::uint64_t hash, Items& items, Same&& same,
                                        typename Items::value_type item) {
  return items[table.find_or_make(
      hash, [&](std::uint32_t known) { return same(items[known]); },
      [&] {
        items.push_back(std::move(item));
        return static_cast<std::uint32_t>(items.size() - 1);
      })];
}

}  // namespace tacho::report
