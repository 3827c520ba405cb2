// Interned texts: equal texts are stored once, and a reference is a number of four bytes. A capture has up to
// a million names, most of them short and many equal; each takes its bytes and about three words.
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

  // Equal texts have equal numbers. Throws std::bad_alloc when all texts together take 16 GiB.
  Number add(std::string_view text);
  // kNone when it was never added.
  Number find(std::string_view text) const;
  std::string_view operator[](Number number) const;
  // A copy that stays, one for equal texts.
  std::string_view keep(std::string_view text) { return (*this)[add(text)]; }
  // Frees the hash table: no more texts are added or looked up.
  void end() {
    std::vector<Slot>().swap(slots_);
    count_ = 0;
  }

 private:
  // Texts are stored in pieces, each with its size in front, at multiples of kUnit. A number counts these
  // from the first piece on; a text that is longer than a piece has one of its own, which stands for as many
  // as it is long.
  using Size = std::uint32_t;
  static constexpr std::size_t kUnit = sizeof(Size), kPiece = std::size_t{1} << 16;  // bytes
  static constexpr std::size_t kPieceUnits = kPiece / kUnit;
  struct Slot {
    Number number = kNone;
    std::uint32_t tag = 0;  // half of the hash: the slot it belongs to, and a first comparison
  };

  Number append(std::string_view text);
  std::size_t place_of(std::uint32_t tag, std::string_view text) const;
  void grow();

  SeededTextHash hash_;
  std::vector<std::unique_ptr<char[]>> pieces_;  // null: the long text before goes on
  std::size_t next_ = 0, end_ = 0;               // units: where the next text goes, and where its piece ends
  std::vector<Slot> slots_;                      // a power of two
  std::size_t count_ = 0;
};

}  // namespace tacho::format
