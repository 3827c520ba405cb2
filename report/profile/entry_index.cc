#include "report/profile/entry_index.h"

#include <algorithm>

namespace tacho::report {

EntryIndex::EntryIndex(std::span<const KeyUse> keys, const SampleFacts& facts, const FunctionTable& functions)
    : keys_(keys), facts_(&facts), functions_(&functions) {}

void EntryIndex::begin_group() {
  if (++group_ != 0) return;
  std::ranges::fill(by_code_, Slot());
  group_ = 1;
}

void EntryIndex::learn_functions() {
  for (; learned_ < functions_->size(); ++learned_) code_of(FunctionId{learned_});
  if (functions_->has_ended()) identities_.reset();
}

EntryIndex::CodeId EntryIndex::make_code(FunctionId function) {
  RowFacts row;
  row.function = &(*functions_)[function];
  words_.clear();
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    if (is_of_function(keys_[key])) words_.push_back(keys_[key].key->identity(show(key), row));
  }
  return codes_[function] = identities_->id_of(words_);
}

}  // namespace tacho::report
