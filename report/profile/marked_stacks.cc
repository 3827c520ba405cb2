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

}  // namespace tacho::report
