// Finds the row of a function. Keys are evaluated once for each function of a profile; within a group of
// rows, which differ by their function only, a row is found by two array accesses. All events of a report
// share this index, as its size is the number of functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "report/profile/function_table.h"
#include "report/profile/sort_keys.h"
#include "report/samples/tables.h"

namespace tacho::report {

class EntryIndex {
 public:
  static constexpr std::uint32_t kNone = ~0U;
  // The arguments must outlive this.
  EntryIndex(std::span<const KeyUse> keys, const SampleFacts& facts, const FunctionTable& functions);

  std::span<const KeyUse> keys() const { return keys_; }
  const SampleFacts& facts() const { return *facts_; }
  KeyShow show(std::size_t key) const { return {keys_[key], *facts_}; }

  // Evaluates the keys for all functions now in the table; else this is done on first use. Frees the
  // identities if the table is complete.
  void learn_functions();
  // Begins another group: rows of the last one are dropped.
  void begin_group();
  // The row of a function in the current group; if there is none, the result of make(). Functions with equal
  // key values share a row.
  template <class Make>
  std::uint32_t find_or_make(FunctionId function, Make&& make) {
    const CodeId code = code_of(function);
    if (!by_code_.has(code)) by_code_.resize(functions_->size());
    if (by_code_[code].group != group_) by_code_[code] = {group_, make()};
    return by_code_[code].entry;
  }

 private:
  enum class CodeId : std::uint32_t {};  // of a function's key values: equal for equal values
  struct Slot {
    std::uint32_t group = 0, entry = kNone;
  };
  CodeId code_of(FunctionId function) {
    if (!codes_.has(function)) codes_.resize(functions_->size(), kNo<CodeId>);
    return codes_[function] != kNo<CodeId> ? codes_[function] : make_code(function);
  }
  CodeId make_code(FunctionId function);

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
  const FunctionTable* functions_;
  std::uint32_t group_ = 0;  // from 1 up
  IdVector<CodeId, Slot> by_code_;
  IdVector<FunctionId, CodeId> codes_;  // kNo: not evaluated
  std::uint32_t learned_ = 0;           // the number of functions evaluated
  std::vector<std::uint64_t> words_;    // scratch
  std::optional<DistinctLists<CodeId, std::uint64_t>> identities_{std::in_place};  // until all are evaluated
};

}  // namespace tacho::report
