#include "report/profile/wait_chains.h"

namespace tacho::report {

const Stack* WaitChains::stack_of(const Wait& wait) {
  frames_.clear();
  frame_names_.clear();
  // A frame with a name has the sample's address, which is not used.
  for (auto waker = wait.wakers.rbegin(); waker != wait.wakers.rend(); ++waker) {
    add_frame(wait.location, id_of_name(waker->comm));
    for (std::size_t i = waker->frames; i-- > 0;) add_frame(waker->stack->frames[i], kNo<WaitNameId>);
    add_frame(wait.location, id_of_name(kWakerMark));
  }
  for (const LocationId location : wait.stack->frames) add_frame(location, kNo<WaitNameId>);
  return stacks_.intern(frames_, frame_names_);
}

WaitNameId WaitChains::id_of_name(std::string_view name) {
  const auto [known, is_new] = by_name_.try_emplace(name, kNo<WaitNameId>);
  if (is_new) known->second = names_.push_back(name);
  return known->second;
}

}  // namespace tacho::report
