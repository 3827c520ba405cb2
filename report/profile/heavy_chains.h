// The call chains of the rows that are heavy enough to draw a graph, as chains of functions. Where only those
// have a graph, nobody asks for the chains of the others, which are most: so none is named before the rows
// are made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "report/profile/call_tree.h"
#include "report/profile/function_stacks.h"
#include "report/profile/profile.h"

namespace tacho::report {

class HeavyChains {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  // Names the chains of the profile's `rows` that belong to an entry of which is_heavy(entry) holds.
  // `entries`: the entry of each row, kNone where it has none; `count`: one more than the highest. Blocks of
  // one event only.
  HeavyChains(const Profile& profile, FunctionStacks& stacks, std::span<const std::uint32_t> rows,
              std::span<const std::uint32_t> entries, std::size_t count,
              const std::function<bool(std::uint32_t entry)>& is_heavy);

  // How many distinct chains an entry has, and these with what they weigh.
  std::size_t count(std::uint32_t entry) const { return counts_[entry]; }
  // One list for each of `entries`. `by_samples`: periods are all 0, and samples stand in for them.
  std::vector<std::vector<Strand>> strands(std::span<const std::uint32_t> entries, bool by_samples) const;

 private:
  struct Chain {
    std::uint32_t entry = 0, number = 0;  // of the chain in stacks_
    Weight weight;
  };
  void add(std::uint32_t entry, std::uint32_t number, const Weight& weight);

  const FunctionStacks* stacks_;
  std::vector<Chain> chains_;  // in the order of their first rows
  IndexTable by_entry_and_number_;
  std::vector<std::uint32_t> counts_;  // by entry
};

}  // namespace tacho::report
