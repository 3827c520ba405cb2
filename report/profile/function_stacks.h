// Call chains as chains of functions, each once. A capture's distinct stacks are chains of addresses; as
// chains of functions they are far fewer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/profile/branch_chains.h"
#include "report/profile/function_table.h"
#include "report/profile/wait_chains.h"
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/stable_array.h"

namespace tacho::report {

// What stands first in a chain: the outermost caller, or the leaf.
enum class ChainOrder : std::uint8_t { Caller, Callee };

struct ChainOptions {
  ChainOrder order = ChainOrder::Callee;
  bool hides_unknown = false;              // leaves out frames without a name
  const BranchChains* branches = nullptr;  // where all stacks come from; null: from the samples themselves
  const WaitChains* waits = nullptr;       // likewise
};

class FunctionStacks {
 public:
  // The table must outlive this.
  FunctionStacks(FunctionTable& functions, ChainOptions options)
      : functions_(&functions), options_(options) {}

  // The number of a stack's chain of functions: equal chains have equal numbers, from 0 up without gaps.
  std::uint32_t number_of(const Stack& stack) {
    ask(stack);
    return answers()[0];
  }
  // The same for many: functions are looked up by ask(), chains are told apart by answers(), which gives the
  // numbers of what was asked since the last time. The tables are larger than the caches: so they are read
  // side by side.
  void ask(const Stack& stack);
  std::span<const std::uint32_t> answers();  // valid until the next question
  // Its functions by their ids, in the order asked for; inlined calls are frames of their own. May be empty.
  // Stays valid.
  std::span<const std::uint32_t> frames(std::uint32_t number) const { return chains_[number]; }
  std::size_t size() const { return chains_.size(); }
  // Frees the table that finds equal chains: no more are added. Chains stay.
  void end_lookups() {
    by_frames_.forget();
    by_stack_.forget();
  }

 private:
  static constexpr std::uint32_t kUnasked = ~0U;
  struct Asked {
    std::uint32_t stack = 0;
    std::uint32_t known = kUnasked;  // its chain's number
    std::size_t begin = 0, end = 0;  // of its functions in frames_
    std::uint64_t hash = 0;
  };
  void add_frames(const Stack& stack);
  std::uint32_t intern(const Asked& asked);
  std::span<const std::uint32_t> keep(std::span<const std::uint32_t> frames);

  FunctionTable* functions_;
  ChainOptions options_;
  ByNumber<std::uint32_t> by_stack_{kUnasked};
  IndexTable by_frames_;
  StableArray<std::span<const std::uint32_t>> chains_;
  std::vector<Asked> asked_;
  std::vector<std::uint32_t> frames_, answers_;  // of the stacks that were asked for
  std::vector<format::LargePiece<std::uint32_t>> memory_;
  std::uint32_t* free_ = nullptr;  // in the last piece
  std::size_t left_ = 0;           // frames from there on
};

}  // namespace tacho::report
