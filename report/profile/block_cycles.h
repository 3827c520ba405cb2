// Cycles of blocks of code. A block is the code from the target of a branch to the source of the next one;
// the processor records the cycles with each branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/profile/function.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/tables.h"

namespace tacho::report {

// All blocks of a function that end at one address. The longest block inside the function gives the start; if
// there is none, the start of the function is used.
struct CycleBlock {
  std::uint64_t start = 0, end = 0;        // offsets in the function
  std::uint64_t cycles = 0, branches = 0;  // sums of all blocks that end there; branches > 0
  Location last{};                         // where it ends
};

class BlockCycles {
 public:
  // `knows_starts`: all branches were recorded, so a block begins at the target of the branch before.
  explicit BlockCycles(bool knows_starts) : knows_starts_(knows_starts) {}

  // Adds all branches of a sample. As in perf, samples whose newest branch has no cycles are left out.
  void add_branches(const ResolvedSample& sample);
  // Groups blocks by function. Call it after the last sample and before the functions below.
  void settle(Resolver& resolver);

  // The cycles of all branches, including those in no function.
  std::uint64_t total() const { return total_; }
  // Sorted by end; empty if no block ends in the function.
  std::vector<CycleBlock> blocks_of(const Function& function);

 private:
  enum class CodeId : std::uint32_t {};
  // A block: all branches from one source that follow a branch to the given target.
  struct Block {
    LocationId start = kNo<LocationId>, end{};
    std::uint64_t cycles = 0, branches = 0;
  };
  struct Code {  // a function, by its address
    const symbolize::Module* module = nullptr;
    std::uint64_t start = 0, end = 0;
    bool operator==(const Code&) const = default;
  };
  struct Ended {
    CodeId code{};
    bool has_start = false;
    CycleBlock block;
  };
  CodeId code_of(const Code& code);
  void add_block(Resolver& resolver, const Block& block);

  bool knows_starts_;
  std::uint64_t total_ = 0;
  std::vector<Block> blocks_;
  IndexTable<> by_block_;
  KeyNumbers<CodeId, Code> codes_;
  std::vector<Ended> ended_;  // sorted by function and end, when settled
  IndexTable<> by_end_;
};

}  // namespace tacho::report
