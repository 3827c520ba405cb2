// Interned texts: equal texts are stored once and have a number of four bytes. For the names of a capture, of
// which there may be a million, most of them short and many equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "format/base/seeded_hash.h"

namespace tacho::format {

// One thread adds. A text does not move until the pool is destroyed, so other threads may hold views of it.
class TextPool {
 public:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};

  // Equal texts have equal numbers. Throws std::bad_alloc when one text takes 4 GiB or all together 16 GiB.
  Number add_text(std::string_view text);
  // kNone: it was not added.
  Number find_text(std::string_view text) const;
  std::string_view operator[](Number number) const;
  // The pool's copy of a text.
  std::string_view keep(std::string_view text) { return (*this)[add_text(text)]; }
  // Frees the hash table: no more texts are added or looked up.
  void end_lookups() {
    std::vector<Slot>().swap(slots_);
    count_ = 0;
  }

 private:
  // Texts are stored in pieces, with their size in front, at multiples of kUnit. A text's number is its
  // position in units over all pieces. A text that is longer than a piece has a piece of its own, which
  // counts as several.
  using Size = std::uint32_t;
  static constexpr std::size_t kUnit = sizeof(Size), kPiece = std::size_t{1} << 16;  // bytes
  static constexpr std::size_t kPieceUnits = kPiece / kUnit;
  struct Slot {
    Number number = kNone;
    std::uint32_t tag = 0;  // half of the hash: decides the slot, and is compared first
  };

  Number append(std::string_view text);
  std::size_t place_of(std::uint32_t tag, std::string_view text) const;
  void grow();

  SeededTextHash hash_;
  std::vector<std::unique_ptr<char[]>> pieces_;  // null: continues a long text
  std::size_t next_ = 0, end_ = 0;               // in units: place of the next text, end of its piece
  std::vector<Slot> slots_;                      // a power of two
  std::size_t count_ = 0;
};

}  // namespace tacho::format
