#include "bpf/program_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tacho::bpf {

std::string described(const Candidate& candidate) { return candidate.name + " (" + candidate.section + ")"; }

ProgramChoice::ProgramChoice(std::vector<Candidate> candidates) : rejected_(candidates.size()) {
  std::vector<Candidate> last;
  for (const Candidate& candidate : candidates) {
    const bool drops =
        !candidate.group.empty() && std::ranges::any_of(candidates, [&](const Candidate& each) {
          return each.drops_events && each.group == candidate.group && each.set == candidate.set;
        });
    (drops ? last : candidates_).push_back(candidate);
  }
  std::ranges::move(last, std::back_inserter(candidates_));
}

std::size_t ProgramChoice::leader(const std::string& group) const {
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].group == group && rejected_[i].empty()) return i;
  return candidates_.size();
}

bool ProgramChoice::wanted(std::size_t candidate) const {
  const Candidate& asked = candidates_[candidate];
  if (!rejected_[candidate].empty()) return false;
  return asked.group.empty() || candidates_[leader(asked.group)].set == asked.set;
}

Result<> ProgramChoice::reject(std::size_t candidate, std::string reason) {
  const Candidate asked = candidates_[candidate];
  rejected_[candidate] = std::move(reason);
  if (asked.group.empty())
    return asked.optional ? Result<>(Done{})
                          : Result<>(Error{"program " + described(asked) + ": " + rejected_[candidate]});

  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].group == asked.group && candidates_[i].set == asked.set && rejected_[i].empty())
      rejected_[i] = "its companion " + described(asked) + " cannot be used";
  if (leader(asked.group) != candidates_.size()) return Done{};

  std::string reasons;
  bool optional = true;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].group != asked.group) continue;
    optional = optional && candidates_[i].optional;
    reasons += "\n  " + described(candidates_[i]) + ": " + rejected_[i];
  }
  if (optional) return Done{};
  return Error{"none of the alternatives '" + asked.group + "' can run on this kernel:" + reasons};
}

std::string ProgramChoice::why_not(std::size_t candidate) const {
  if (wanted(candidate)) return "";
  if (!rejected_[candidate].empty()) return rejected_[candidate];
  return "not needed: " + described(candidates_[leader(candidates_[candidate].group)]) + " is used";
}

}  // namespace tacho::bpf
