#include "report/profile/named_rows.h"

#include <algorithm>

namespace tacho::report {

ChainId FunctionStacks::chain_of(const Stack& stack) {
  if (const ChainId known = by_stack_.find(stack.id); known != kNo<ChainId>) return known;
  find_frames(stack);
  return by_stack_[stack.id] = chains_.id_of(frames_);
}

// Sets `frames_` to the functions of a stack.
void FunctionStacks::find_frames(const Stack& stack) {
  frames_.clear();
  // Resolved in perf's order: names of inlined calls depend on earlier look-ups, as addr2line finds them.
  const bool is_caller = options_.order == ChainOrder::Caller;
  std::span<const StepId> steps;
  if (options_.branches != nullptr) steps = options_.branches->steps_of(stack);
  std::span<const WaitNameId> names;
  if (options_.waits != nullptr) names = options_.waits->names_of(stack);
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const std::size_t at = is_caller ? stack.frames.size() - 1 - i : i;
    const LocationId location = stack.frames[at];
    if (!names.empty() && names[at] != kNo<WaitNameId>) {
      frames_.push_back(functions_->of_name(options_.waits->name(names[at])));
      continue;
    }
    if (!steps.empty() && steps[at] != kNo<StepId>) {
      frames_.push_back(functions_->of_step(location, steps[at]));
      continue;
    }
    const auto functions = functions_->of_frame(location);
    const std::size_t before = frames_.size();
    frames_.insert(frames_.end(), functions.begin(), functions.end());
    if (is_caller) std::reverse(frames_.begin() + static_cast<std::ptrdiff_t>(before), frames_.end());
  }
  if (!options_.hides_unknown) return;
  std::erase_if(frames_, [this](FunctionId id) { return !(*functions_)[id].has_symbol(); });
}

void NamedRows::name(RowId id) {
  own_.push_back(functions_->of_location(profile_->rows()[id].location));
  if (stacks_ == nullptr || !profile_->looks_at_stacks()) return;
  const Stack* const stack = profile_->stack_of(id);
  chains_.push_back(stack != nullptr ? stacks_->chain_of(*stack) : kNo<ChainId>);
}

}  // namespace tacho::report
