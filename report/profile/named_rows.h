// The rows of a profile with names: for each row the function of its own address, and its call chain as a
// chain of functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/profile/branches.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/wait_chains.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The first frame of a chain: the outermost caller, or the leaf.
enum class ChainOrder : std::uint8_t { Caller, Callee };

struct ChainOptions {
  ChainOrder order = ChainOrder::Callee;
  bool hides_unknown = false;              // frames without a name are left out
  const BranchChains* branches = nullptr;  // makes all stacks; null: stacks are those of the samples
  const WaitChains* waits = nullptr;       // the same
};

// Interns call chains as chains of functions. The distinct stacks of a capture are chains of addresses; there
// are far fewer distinct chains of functions.
class FunctionStacks {
 public:
  // The table must outlive this.
  FunctionStacks(FunctionTable& functions, ChainOptions options)
      : functions_(&functions), options_(options) {}

  // The chain of functions of a stack: equal chains have equal ids, from 0 up without gaps.
  ChainId chain_of(const Stack& stack);
  // The functions in the chosen order; inlined calls are frames, too. May be empty. Stays valid.
  std::span<const FunctionId> frames(ChainId chain) const { return chains_[chain]; }
  std::size_t size() const { return chains_.size(); }
  // Frees the look-up table for equal chains: no more are added. Chains stay.
  void end_lookups() {
    chains_.end_lookups();
    by_stack_.forget();
  }

 private:
  void find_frames(const Stack& stack);

  FunctionTable* functions_;
  ChainOptions options_;
  IdMap<StackId, ChainId> by_stack_{kNo<ChainId>};
  DistinctLists<ChainId, FunctionId> chains_;
  std::vector<FunctionId> frames_;  // scratch: of the current stack
};

class NamedRows {
 public:
  struct Row {
    FunctionId function{};         // of the samples' own address
    ChainId chain = kNo<ChainId>;  // of stacks()
  };

  // The arguments must outlive this. `stacks`: null if call chains do not count.
  NamedRows(const Profile& profile, Session& session, FunctionTable& functions, FunctionStacks* stacks)
      : profile_(&profile),
        functions_(&functions),
        stacks_(stacks),
        most_early_(std::max(kFewFunctions, session.layout().file_size / kBytesEach)) {}

  // Names the rows added since the last call. Called while samples come, so that the thread that reads the
  // capture continues meanwhile. With very many functions, the look-up tables would take as much memory as
  // those of reading: then the remaining rows are named at the end.
  void name_new() {
    if (functions_->size() < most_early_) name_all();
  }
  // Names all rows.
  void name_all() {
    while (own_.size() < profile_->rows().size()) name(own_.next_id());
  }

  // Frees memory: there will be no more rows. `names_other_addresses`: keys continue to resolve addresses
  // other than the rows' own (branch ends, data addresses).
  void end(bool names_other_addresses) {
    if (!names_other_addresses) functions_->end_lookups();
    if (stacks_ != nullptr) stacks_->end_lookups();
  }

  const Profile& profile() const { return *profile_; }
  FunctionTable& functions() const { return *functions_; }
  const FunctionStacks* stacks() const { return stacks_; }
  // The row of the profile must have been named.
  Row operator[](RowId row) const {
    return {.function = own_[row], .chain = chains_.size() == 0 ? kNo<ChainId> : chains_[row]};
  }

 private:
  // The limit of early functions grows with the capture: one for each of this many bytes.
  static constexpr std::uint64_t kFewFunctions = std::uint64_t{1} << 18, kBytesEach = 160;
  void name(RowId id);

  const Profile* profile_;
  FunctionTable* functions_;
  FunctionStacks* stacks_;
  std::uint64_t most_early_;  // functions
  StableArray<FunctionId, RowId> own_;
  StableArray<ChainId, RowId> chains_;  // empty if the profile has no call chains
};

}  // namespace tacho::report
