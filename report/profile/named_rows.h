// The rows of a profile with their names: of each row the function of its own place and its call chain as a
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
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/stable_array.h"

namespace tacho::report {

// Call chains as chains of functions, each once. A capture's distinct stacks are chains of addresses; as
// chains of functions they are far fewer.

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
  // The same for many: functions are looked up by ask(), chains are interned by answers(), which gives the
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

// Whose code ran, of what reports count apart. User: also a hypervisor's, and what is not known.
enum class CpuMode : std::uint8_t { Kernel, User, GuestKernel, GuestUser };

class NamedRows {
 public:
  static constexpr std::uint32_t kNoChain = ~0U;
  struct Row {
    std::uint32_t function = 0;      // id, of the samples' own place
    std::uint32_t chain = kNoChain;  // number in stacks()
    CpuMode mode = CpuMode::User;    // where the samples were taken
  };

  // What is passed must outlive this. `stacks`: null when no call chains count.
  NamedRows(const Profile& profile, Session& session, FunctionTable& functions, FunctionStacks* stacks)
      : profile_(&profile),
        resolver_(&session.resolver()),
        functions_(&functions),
        stacks_(stacks),
        most_early_(std::max(kFewFunctions, session.layout().file_size / kBytesEach)) {}

  // Names the rows that the profile has got since the last call, as soon as they are some dozens: what they
  // need is a cache miss each, so many are prefetched together. Called while samples come, so that the
  // thread that reads the capture goes on meanwhile. Of very many functions the tables that find them would
  // stand beside those of the reading, which are as large: these rows are named in the end.
  void name_new() {
    if (profile_->rows().size() - named() >= kTogether && functions_->size() < most_early_) name_rows();
  }
  // Names all rows.
  void name_all() {
    if (named() != profile_->rows().size()) name_rows();
  }

  // Gives back memory: there will be no more rows. `names_other_places`: keys go on asking for the names of
  // places beside the rows' own (ends of branches, data addresses).
  void end(bool names_other_places) {
    if (!names_other_places) functions_->end_lookups();
    if (stacks_ != nullptr) stacks_->end_lookups();
  }

  const Profile& profile() const { return *profile_; }
  FunctionTable& functions() const { return *functions_; }
  const FunctionStacks* stacks() const { return stacks_; }
  // By the profile's number of the row, which must have been named.
  Row operator[](std::uint32_t row) const {
    const std::uint32_t own = own_[row];
    return {.function = own >> kModeBits,
            .chain = chains_.size() == 0 ? kNoChain : chains_[row],
            .mode = static_cast<CpuMode>(own & ((1U << kModeBits) - 1))};
  }

 private:
  static constexpr std::size_t kTogether = 64;  // rows
  static constexpr unsigned kModeBits = 2;
  // Memory may grow with the capture: a function for each of so many bytes of it.
  static constexpr std::uint64_t kFewFunctions = std::uint64_t{1} << 18, kBytesEach = 160;
  void name_rows();
  void name_rows(std::size_t begin, std::size_t end);
  void fetch_ahead(std::size_t at, std::size_t end) const;
  std::size_t named() const { return own_.size(); }
  bool has_stacks() const { return stacks_ != nullptr && profile_->looks_at_stacks(); }
  const Stack* stack_of(std::size_t row) const { return has_stacks() ? profile_->stack_of(row) : nullptr; }

  const Profile* profile_;
  Resolver* resolver_;
  FunctionTable* functions_;
  FunctionStacks* stacks_;
  std::uint64_t most_early_;  // functions
  // By row: twice its function, and 1 where its samples were taken in the kernel.
  StableArray<std::uint32_t> own_;
  StableArray<std::uint32_t> chains_;  // likewise its chain; none where the profile has no call chains
};

}  // namespace tacho::report
