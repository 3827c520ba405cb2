// Cycles of blocks of code: of what ran from the target of a branch to where the next one was taken. The
// processor records them with each branch that it keeps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/profile/function_table.h"
#include "report/samples/index_table.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// What ended at one place of a function. Of blocks that end there, the longest inside the function
// gives the start; where none does, it is the function's.
struct CycleBlock {
  std::uint64_t start = 0, end = 0;        // of the function's bytes
  std::uint64_t cycles = 0, branches = 0;  // of all that ended there; branches > 0
  Location last{};                         // where it ends
};

class BlockCycles {
 public:
  // `knows_starts`: every branch was kept, so that a block begins where the branch before went to.
  explicit BlockCycles(bool knows_starts) : knows_starts_(knows_starts) {}

  // All branches of a sample; those of one whose newest has no cycles are left out, as perf does.
  void add(const ResolvedSample& sample);
  // Gathers the blocks of each function: after the last sample, before what follows.
  void settle(Resolver& resolver);

  // Of all branches, those in no function included.
  std::uint64_t total() const { return total_; }
  // By their ends; none where no block ended in the function.
  std::vector<CycleBlock> blocks_of(const Function& function);

 private:
  static constexpr std::uint32_t kNone = IndexTable::kNone;
  // Branches from one place, after one that went to another.
  struct Way {
    std::uint32_t start = kNone, end = 0;  // numbers of places
    std::uint64_t cycles = 0, branches = 0;
  };
  struct Code {  // a function, by its address
    const symbolize::Module* module = nullptr;
    std::uint64_t start = 0, end = 0;
    bool operator==(const Code&) const = default;
  };
  struct Ended {
    std::uint32_t code = 0;  // in codes_
    bool has_start = false;
    CycleBlock block;
  };
  std::uint32_t code_of(const Code& code);
  void take(Resolver& resolver, const Way& way);

  bool knows_starts_;
  std::uint64_t total_ = 0;
  std::vector<Way> ways_;
  IndexTable by_way_;
  std::vector<Code> codes_;
  IndexTable by_code_;
  std::vector<Ended> ended_;  // sorted by function and end, when settled
  IndexTable by_end_;
};

}  // namespace tacho::report
