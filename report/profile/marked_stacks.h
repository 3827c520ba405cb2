// Stacks whose frames have marks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Interned stacks with a mark for each frame, so that frames of one address can differ: by the step of a
// branch, or by a name between two threads.
template <class Mark>
class MarkedStacks {
 public:
  // `marks`: one for each of `frames`. Valid as long as this.
  const Stack* intern(std::span<const LocationId> frames, std::span<const Mark> marks) {
    std::uint64_t hash = frames.size();
    for (std::size_t i = 0; i < frames.size(); ++i)
      hash = by_frames_.hash.add(hash, std::uint64_t{value_of(marks[i])} << 32 | value_of(frames[i]));
    return &stacks_[by_frames_.find_or_make(
        hash,
        [&](StackId known) {
          return std::ranges::equal(stacks_[known].frames, frames) &&
                 std::ranges::equal(marks_of_[known], marks);
        },
        [&] {
          marks_of_.push_back(marks_.keep(marks));
          return stacks_.push_back({stacks_.next_id(), frames_.keep(frames)});
        })];
  }
  // The marks of a stack of this object.
  std::span<const Mark> marks_of(const Stack& stack) const { return marks_of_[stack.id]; }
  // The memory of frames and marks.
  std::size_t bytes() const { return frames_.bytes() + marks_.bytes(); }

 private:
  StableArray<Stack, StackId> stacks_;
  IdVector<StackId, std::span<const Mark>> marks_of_;
  IndexTable<StackId> by_frames_;
  ListStore<LocationId> frames_;
  ListStore<Mark> marks_;
};

}  // namespace tacho::report
