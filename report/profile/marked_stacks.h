// Stacks whose frames each have a word beside them, which tells frames of one place apart: a step of a
// branch, a mark between two threads. Each distinct one is kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"

namespace tacho::report {

class MarkedStacks {
 public:
  // `words`: as many as `frames`. The stack has a number of its own, from 0 up. Valid as long as this.
  const Stack* intern(std::span<const std::uint32_t> frames, std::span<const std::uint32_t> words);
  // Those of a stack from here.
  std::span<const std::uint32_t> words_of(const Stack& stack) const { return words_of_[stack.number]; }
  // What frames and words take.
  std::size_t bytes() const { return bytes_; }

 private:
  std::span<const std::uint32_t> keep(std::span<const std::uint32_t> words);

  StableArray<Stack> stacks_;
  std::vector<std::span<const std::uint32_t>> words_of_;  // by stack
  IndexTable by_frames_;
  std::vector<format::LargePiece<std::uint32_t>> memory_;
  std::size_t bytes_ = 0;          // of it, given out
  std::uint32_t* free_ = nullptr;  // in the last piece
  std::size_t left_ = 0;           // words from there on
};

}  // namespace tacho::report
