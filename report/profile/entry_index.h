// Which row of a report a function belongs to. What keys say of a function is asked once for a profile, and
// within a group of rows (equal in all that does not hang on the function) a row is found by one look into an
// array. One index serves all events of a report: a table of functions for each would make the cost follow
// events times functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "report/profile/function_table.h"
#include "report/profile/sort_key.h"
#include "report/samples/index_table.h"

namespace tacho::report {

// Rows of words, all of one width, numbered from 0 up: equal rows have equal numbers.
class IdentityRows {
 public:
  // The row at hand, empty: to be filled. Then number() returns its number.
  std::vector<std::uint64_t>& begin() {
    words_.clear();
    return words_;
  }
  std::uint32_t number();
  std::uint32_t size() const { return size_; }
  // Gives its memory back. From then on every row is new.
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

  // Where the last word is a number of something that is numbered, as of a symbol: the row that came with it
  // first. Others by all their words.
  std::vector<std::uint32_t, format::LargePages<std::uint32_t>> by_last_word_;
  IndexTable by_words_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t, format::LargePages<std::uint64_t>> known_;
  std::uint32_t size_ = 0, last_ = 0;  // what was asked last is mostly asked again
  bool has_forgotten_ = false;
};

class EntryIndex {
 public:
  static constexpr std::uint32_t kNone = ~0U;
  // What is passed must outlive this.
  EntryIndex(std::span<const KeyUse> keys, const SampleFacts& facts, const FunctionTable& functions);

  std::span<const KeyUse> keys() const { return keys_; }
  const SampleFacts& facts() const { return *facts_; }
  KeyShow show(std::size_t key) const { return {keys_[key], *facts_}; }

  // Asks the keys about all functions that the table has by now. Otherwise that is done where a function is
  // met first. When the table gets no more, the table of functions is freed.
  void learn_functions();
  // Brings what find_or_make() will read for a function into the cache.
  void prefetch(std::uint32_t function) const {
    if (function < by_function_.size()) __builtin_prefetch(&by_function_[function]);
    if (function < codes_.size()) __builtin_prefetch(&codes_[function]);
  }
  // What it will read of one that is not known(), where prefetch() came before.
  void prefetch_code(std::uint32_t function) const {
    if (function >= codes_.size() || codes_[function] >= by_code_.size()) return;
    __builtin_prefetch(&by_code_[codes_[function]]);
  }
  // The row that a function has by itself in the group at hand; kNone: it was not asked for, or has not.
  std::uint32_t known(std::uint32_t function) const {
    if (function >= by_function_.size() || by_function_[function].group != group_) return kNone;
    return by_function_[function].entry;
  }

  // What the keys say of a function, as a number: equal where they see no difference.
  std::uint32_t code_of(std::uint32_t function) {
    if (function >= codes_.size()) codes_.resize(functions_->size(), kNone);
    return codes_[function] != kNone ? codes_[function] : make_code(function);
  }

  // From now on another group is at hand: rows are forgotten.
  void begin_group();
  // The row of a function, in the group at hand; when it has none, the one that make() returns. Functions
  // that are the same to the keys share it.
  template <class Make>
  std::uint32_t find_or_make(std::uint32_t function, Make&& make) {
    if (function >= by_function_.size()) grow();
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
  void grow();
  std::uint32_t make_code(std::uint32_t function);

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
  const FunctionTable* functions_;
  std::uint32_t group_ = 0;  // counted; 0 is none
  std::vector<Slot, format::LargePages<Slot>> by_function_;
  std::vector<Slot, format::LargePages<Slot>> by_code_;
  // Functions that are the same to the keys have the same code.
  std::vector<std::uint32_t, format::LargePages<std::uint32_t>> codes_;  // by function; kNone: not asked
  std::uint32_t learned_ = 0;                                            // functions from 0 up
  IdentityRows identities_;
};

}  // namespace tacho::report
