#include "report/profile/wait_chains.h"

#include <algorithm>

namespace tacho::report {

const Stack* WaitChains::stack_of(const Wait& wait) {
  frames_.clear();
  frame_names_.clear();
  // A frame that is no place stands at that of the sample: nobody looks at it.
  for (auto waker = wait.wakers.rbegin(); waker != wait.wakers.rend(); ++waker) {
    add(wait.place, number_of(waker->is_interrupt ? kInterruptMark : waker->comm));
    for (std::size_t i = waker->frames; i-- > 0;) add(waker->stack->frames[i], kPlace);
    add(wait.place, number_of(kWakerMark));
  }
  for (const std::uint32_t location : wait.stack->frames) add(location, kPlace);
  std::uint64_t hash = frames_.size();
  for (std::size_t i = 0; i < frames_.size(); ++i)
    hash = by_frames_.hash.add(hash, std::uint64_t{frame_names_[i]} << 32 | frames_[i]);
  const std::uint32_t number = by_frames_.find_or_make(
      hash,
      [&](std::uint32_t known) {
        return std::ranges::equal(stacks_[known].frames, frames_) &&
               std::ranges::equal(names_of_[known], frame_names_);
      },
      [&] {
        const auto made = static_cast<std::uint32_t>(stacks_.size());
        stacks_.push_back({made, keep(frames_)});
        names_of_.push_back(keep(frame_names_));
        return made;
      });
  return &stacks_[number];
}

std::uint32_t WaitChains::number_of(std::string_view name) {
  const auto [known, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()) + 1);
  if (is_new) names_.push_back(name);
  return known->second;
}

std::span<const std::uint32_t> WaitChains::keep(std::span<const std::uint32_t> words) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;  // words
  if (words.size() > left_) {
    left_ = std::max(words.size(), kPiece);
    memory_.push_back(format::make_large_piece<std::uint32_t>(left_));
    free_ = memory_.back().get();
  }
  const std::span kept(free_, words.size());
  std::ranges::copy(words, kept.begin());
  free_ += words.size();
  left_ -= words.size();
  bytes_ += words.size_bytes();
  return kept;
}

}  // namespace tacho::report
