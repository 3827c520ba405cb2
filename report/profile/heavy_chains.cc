#include "report/profile/heavy_chains.h"

#include <algorithm>

namespace tacho::report {

HeavyChains::HeavyChains(const Profile& profile, FunctionStacks& stacks, std::span<const std::uint32_t> rows,
                         std::span<const std::uint32_t> entries, std::size_t count,
                         const std::function<bool(std::uint32_t entry)>& is_heavy)
    : stacks_(&stacks), counts_(count) {
  std::vector<bool> heavy(count);
  for (std::uint32_t entry = 0; entry < count; ++entry) heavy[entry] = is_heavy(entry);
  std::vector<std::size_t> wanted;  // places in `rows`
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (entries[at] != kNone && heavy[entries[at]] && profile.stack_of(rows[at]) != nullptr)
      wanted.push_back(at);
  }
  // What they need lies all over memory: frames are fetched some rows ahead, chains are told apart by dozens.
  constexpr std::size_t kTogether = 64, kStacks = 12, kFrames = 6;  // rows
  for (std::size_t begin = 0; begin < wanted.size(); begin += kTogether) {
    const std::size_t end = std::min(wanted.size(), begin + kTogether);
    for (std::size_t i = begin; i < end; ++i) {
      if (i + kStacks < wanted.size()) __builtin_prefetch(profile.stack_of(rows[wanted[i + kStacks]]));
      if (i + kFrames < wanted.size())
        __builtin_prefetch(profile.stack_of(rows[wanted[i + kFrames]])->frames.data());
      stacks.ask(*profile.stack_of(rows[wanted[i]]));
    }
    const auto numbers = stacks.answers();
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = wanted[i];
      add(entries[at], numbers[i - begin], profile.weights(profile.rows()[rows[at]])[0]);
    }
  }
  by_entry_and_number_.forget();
}

void HeavyChains::add(std::uint32_t entry, std::uint32_t number, const Weight& weight) {
  const std::uint32_t found = by_entry_and_number_.find_or_make(
      by_entry_and_number_.hash(entry, number),
      [&](std::uint32_t known) { return chains_[known].entry == entry && chains_[known].number == number; },
      [&] {
        chains_.push_back({entry, number, {}});
        ++counts_[entry];
        return static_cast<std::uint32_t>(chains_.size() - 1);
      });
  chains_[found].weight += weight;
}

std::vector<std::vector<Strand>> HeavyChains::strands(std::span<const std::uint32_t> entries,
                                                      bool by_samples) const {
  std::vector<std::vector<Strand>> lists(entries.size());
  std::vector<std::uint32_t> list_of(counts_.size(), kNone);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    list_of[entries[i]] = i;
    lists[i].reserve(counts_[entries[i]]);
  }
  for (const Chain& chain : chains_) {
    const auto frames = stacks_->frames(chain.number);
    if (list_of[chain.entry] == kNone || frames.empty()) continue;
    const std::uint64_t period = by_samples ? chain.weight.samples : chain.weight.period;
    lists[list_of[chain.entry]].push_back({frames, period, chain.weight.samples});
  }
  return lists;
}

}  // namespace tacho::report
