#include "record/stacks/told_mappings.h"

namespace tacho::record {

void ToldMappings::note(MappingPlace place, std::uint32_t module) {
  const auto [at, is_new] = told_[place.process].try_emplace(place.start);
  at->second.module = module;
  if (!is_new) return;
  at->second.sequence = ++last_turn_;
  turns_.push_back({place, last_turn_});
  if (turns_.size() <= most_) return;
  const Turn oldest = turns_.front();
  turns_.pop_front();
  const auto process = told_.find(oldest.place.process);
  if (process == told_.end()) return;
  const auto told = process->second.find(oldest.place.start);
  if (told != process->second.end() && told->second.sequence == oldest.sequence) process->second.erase(told);
  if (process->second.empty()) told_.erase(process);
}

std::optional<std::uint32_t> ToldMappings::module_at(MappingPlace place) const {
  const auto process = told_.find(place.process);
  if (process == told_.end()) return std::nullopt;
  const auto told = process->second.find(place.start);
  return told == process->second.end() ? std::nullopt : std::optional(told->second.module);
}

void ToldMappings::forget(std::uint32_t process) { told_.erase(process); }

void ToldMappings::forget_modules(const std::unordered_set<std::uint32_t>& modules) {
  for (auto& [process, starts] : told_)
    std::erase_if(starts, [&modules](const auto& told) { return modules.contains(told.second.module); });
}

}  // namespace tacho::record
