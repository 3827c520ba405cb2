// Call chains for a view that looks at each once and keeps none: they lie in pieces of memory that go when
// nobody holds them any more.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "report/samples/resolved_sample.h"

namespace tacho::report {

// One thread makes stacks, and holds the pieces of the last tens of thousands. Whoever hands a stack to
// another thread hands its piece along.
class PassingStacks {
 public:
  // `piece`: as the pieces are counted while they are made, from 1.
  struct Place {
    const Stack* stack = nullptr;
    std::uint64_t piece = 0;
  };
  Place make(std::uint32_t number, std::span<const std::uint32_t> frames) {
    constexpr std::size_t kHead = sizeof(Stack) / sizeof(Word);
    const std::size_t words = kHead + (frames.size_bytes() + sizeof(Word) - 1) / sizeof(Word);
    if (words > left_) add_piece(words);
    auto* const copy = reinterpret_cast<std::uint32_t*>(free_ + kHead);
    std::ranges::copy(frames, copy);
    const auto* const stack = ::new (static_cast<void*>(free_)) Stack{number, {copy, frames.size()}};
    free_ += words;
    left_ -= words;
    return {stack, pieces_made_};
  }
  // False when the piece was given up, and its stacks with it.
  bool holds(std::uint64_t piece) const { return piece != 0 && piece + pieces_.size() > pieces_made_; }
  // Of one that it holds.
  const StackMemory& memory(std::uint64_t piece) const { return pieces_[piece % pieces_.size()]; }

 private:
  using Word = StackMemory::element_type;
  static_assert(alignof(Stack) <= alignof(Word) && sizeof(Stack) % sizeof(Word) == 0);
  static constexpr std::size_t kPiece = (std::size_t{64} << 10) / sizeof(Word);
  // In place of the oldest one.
  void add_piece(std::size_t least) {
    left_ = std::max(least, kPiece);
    StackMemory& piece = pieces_[++pieces_made_ % pieces_.size()];
    piece = std::make_shared_for_overwrite<Word[]>(left_);
    free_ = piece.get();
  }

  std::array<StackMemory, 32> pieces_;
  std::uint64_t pieces_made_ = 0;
  Word* free_ = nullptr;  // in the last piece
  std::size_t left_ = 0;  // words from there on
};

}  // namespace tacho::report
