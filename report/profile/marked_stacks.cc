#include "report/profile/marked_stacks.h"

#include <algorithm>

namespace tacho::report {

const Stack* MarkedStacks::intern(std::span<const std::uint32_t> frames,
                                  std::span<const std::uint32_t> words) {
  std::uint64_t hash = frames.size();
  for (std::size_t i = 0; i < frames.size(); ++i)
    hash = by_frames_.hash.add(hash, std::uint64_t{words[i]} << 32 | frames[i]);
  const std::uint32_t number = by_frames_.find_or_make(
      hash,
      [&](std::uint32_t known) {
        return std::ranges::equal(stacks_[known].frames, frames) &&
               std::ranges::equal(words_of_[known], words);
      },
      [&] {
        const auto made = static_cast<std::uint32_t>(stacks_.size());
        stacks_.push_back({made, keep(frames)});
        words_of_.push_back(keep(words));
        return made;
      });
  return &stacks_[number];
}

std::span<const std::uint32_t> MarkedStacks::keep(std::span<const std::uint32_t> words) {
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

const Stack* WaitChains::stack_of(const Wait& wait) {
  frames_.clear();
  frame_names_.clear();
  // A frame that is no place has the sample's address, which is not used.
  for (auto waker = wait.wakers.rbegin(); waker != wait.wakers.rend(); ++waker) {
    add(wait.place, number_of(waker->comm));
    for (std::size_t i = waker->frames; i-- > 0;) add(waker->stack->frames[i], kPlace);
    add(wait.place, number_of(kWakerMark));
  }
  for (const std::uint32_t location : wait.stack->frames) add(location, kPlace);
  return stacks_.intern(frames_, frame_names_);
}

std::uint32_t WaitChains::number_of(std::string_view name) {
  const auto [known, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()) + 1);
  if (is_new) names_.push_back(name);
  return known->second;
}

}  // namespace tacho::report
