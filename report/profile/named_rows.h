// The rows of a profile with their names: of each row the function of its own place and its call chain as a
// chain of functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "report/profile/function_stacks.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"

namespace tacho::report {

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
  // need lies all over memory and is fetched for many side by side. Called while samples come, so that the
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
