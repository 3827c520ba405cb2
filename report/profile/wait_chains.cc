#include "report/profile/wait_chains.h"

namespace tacho::report {

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
