#include "report/profile/function_stacks.h"

#include <algorithm>

namespace tacho::report {

std::uint32_t FunctionStacks::number_of(const Stack& stack) {
  if (const std::uint32_t known = by_stack_.find(stack.number); known != kUnasked) return known;
  frames_.clear();
  // Names are asked for in the order in which perf asks: where binutils' names depend on it, so do ours.
  const bool is_caller = options_.order == ChainOrder::Caller;
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const std::uint32_t location = stack.frames[is_caller ? stack.frames.size() - 1 - i : i];
    if (const std::uint32_t only = functions_->only_of_frame(location); only != FunctionTable::kNone) {
      frames_.push_back(only);
      continue;
    }
    const auto functions = functions_->of_frame(location);
    const std::size_t before = frames_.size();
    frames_.insert(frames_.end(), functions.begin(), functions.end());
    if (is_caller) std::reverse(frames_.begin() + static_cast<std::ptrdiff_t>(before), frames_.end());
  }
  if (options_.hides_unknown)
    std::erase_if(frames_, [this](std::uint32_t id) { return (*functions_)[id].name.empty(); });
  return by_stack_[stack.number] = intern();
}

std::uint32_t FunctionStacks::intern() {
  std::uint64_t hash = frames_.size();
  for (const std::uint32_t id : frames_) hash = by_frames_.hash.add(hash, id);
  return by_frames_.find_or_make(
      hash, [&](std::uint32_t number) { return std::ranges::equal(chains_[number], frames_); },
      [&] {
        chains_.push_back(keep());
        return static_cast<std::uint32_t>(chains_.size() - 1);
      });
}

std::span<const std::uint32_t> FunctionStacks::keep() {
  constexpr std::size_t kPiece = std::size_t{1} << 16;  // frames
  if (frames_.size() > left_) {
    left_ = std::max(frames_.size(), kPiece);
    memory_.push_back(format::make_large_piece<std::uint32_t>(left_));
    free_ = memory_.back().get();
  }
  const std::span kept(free_, frames_.size());
  std::ranges::copy(frames_, kept.begin());
  free_ += frames_.size();
  left_ -= frames_.size();
  return kept;
}

}  // namespace tacho::report
