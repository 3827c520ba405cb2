// Finds the row of a function. Keys are evaluated once for each function of a profile; within a group of
// rows, which differ by their function only, a row is found by one array access. All events of a report share
// this index, as its size is the number of functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/profile/function_table.h"
#include "report/profile/sort_keys.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Numbers distinct rows of words of one width from 0 up.
class IdentityRows {
 public:
  // Returns an empty row for the caller to fill; number() then returns its number.
  std::vector<std::uint64_t>& begin() {
    words_.clear();
    return words_;
  }
  std::uint32_t number();
  std::uint32_t size() const { return size_; }
  // Frees its memory. All later rows are new.
  void forget() {
    has_forgotten_ = true;
    decltype(by_last_word_)().swap(by_last_word_);
    decltype(known_)().swap(known_);
    by_words_.forget();
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  bool is_at(std::uint32_t number) const;
  std::uint32_t append();

  // The first row with this last word, which often is a small number such as a symbol's. Other rows are
  // hashed.
  std::vector<std::uint32_t, format::LargePages<std::uint32_t>> by_last_word_;
  IndexTable<> by_words_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t, format::LargePages<std::uint64_t>> known_;
  std::uint32_t size_ = 0, last_ = 0;  // last_: found last, often the next one too
  bool has_forgotten_ = false;
};

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
    if (!by_function_.has(function)) by_function_.resize(functions_->size());
    Slot& own = by_function_[function];
    if (own.group == group_) return own.entry;
    const std::uint32_t code = code_of(function);
    if (code >= by_code_.size()) by_code_.resize(identities_.size());
    if (by_code_[code].group != group_) by_code_[code] = {group_, make()};
    by_function_[function] = by_code_[code];
    return by_code_[code].entry;
  }

 private:
  struct Slot {
    std::uint32_t group = 0, entry = kNone;
  };
  // The code of a function's key values: equal for equal values.
  std::uint32_t code_of(FunctionId function) {
    if (!codes_.has(function)) codes_.resize(functions_->size(), kNone);
    return codes_[function] != kNone ? codes_[function] : make_code(function);
  }
  std::uint32_t make_code(FunctionId function);

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
  const FunctionTable* functions_;
  std::uint32_t group_ = 0;  // from 1 up
  IdVector<FunctionId, Slot> by_function_;
  std::vector<Slot, format::LargePages<Slot>> by_code_;
  // Functions with equal key values have equal codes.
  IdVector<FunctionId, std::uint32_t> codes_;  // kNone: not evaluated
  std::uint32_t learned_ = 0;                  // the number of functions evaluated
  IdentityRows identities_;
};

}  // namespace tacho::report
