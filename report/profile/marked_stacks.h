// Interned stacks with a word for each frame, so that frames of one address can differ: by the step of a
// branch, or a mark between two threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/large_pages.h"
#include "report/query/waits.h"
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

// Call chains of waits with their wakers: below the stack that went to sleep stands a mark, then the
// stack that woke it, from its leaf on, and the waker's name; then the same of who had woken that one.

class WaitChains {
 public:
  static constexpr std::uint32_t kPlace = 0;  // in names_of(): the frame is a place like any

  // The wait's chain, leaf first like all stacks: so what stands behind the mark comes first here. It has a
  // number of its own: a run takes all stacks from here, or none. Valid as long as this.
  const Stack* stack_of(const Wait& wait);

  // The bytes that chains take: each distinct one its frames.
  std::size_t bytes() const { return stacks_.bytes(); }

  // Of each frame of such a stack: kPlace, or what name() calls it. Empty: all are places.
  std::span<const std::uint32_t> names_of(const Stack& stack) const { return stacks_.words_of(stack); }
  // Lives as long as the session.
  std::string_view name(std::uint32_t number) const { return names_[number - 1]; }

 private:
  std::uint32_t number_of(std::string_view name);
  void add(std::uint32_t location, std::uint32_t name) {
    frames_.push_back(location);
    frame_names_.push_back(name);
  }

  MarkedStacks stacks_;  // with their frames' names
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<std::uint32_t> frames_, frame_names_;  // of the wait at hand
};

}  // namespace tacho::report
