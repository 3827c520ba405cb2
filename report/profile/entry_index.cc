#include "report/profile/entry_index.h"

#include <algorithm>

namespace tacho::report {

std::uint32_t IdentityRows::number() {
  const std::size_t width = words_.size();
  const auto is_at = [&](std::uint32_t number) {
    return std::ranges::equal(std::span(known_).subspan(number * width, width), words_);
  };
  if (size_ > 0 && is_at(last_)) return last_;
  std::uint64_t hash = width;
  for (const std::uint64_t word : words_) hash = by_words_.hash.add(hash, word);
  return last_ = by_words_.find_or_make(hash, is_at, [&] {
    known_.insert(known_.end(), words_.begin(), words_.end());
    return size_++;
  });
}

EntryIndex::EntryIndex(std::span<const KeyUse> keys, const SampleFacts& facts, const FunctionTable& functions)
    : keys_(keys), facts_(&facts), functions_(&functions) {}

void EntryIndex::begin_group() {
  if (++group_ != 0) return;
  std::ranges::fill(by_function_, Slot());
  std::ranges::fill(by_code_, Slot());
  group_ = 1;
}

void EntryIndex::grow() {
  by_function_.resize(functions_->size());
  codes_.resize(functions_->size(), kNone);
}

void EntryIndex::learn_functions() {
  grow();
  for (; learned_ < codes_.size(); ++learned_) code_of(learned_);
}

std::uint32_t EntryIndex::code_of(std::uint32_t function) {
  if (codes_[function] != kNone) return codes_[function];
  RowFacts row;
  row.function = &(*functions_)[function];
  auto& words = identities_.begin();
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    if (is_of_function(keys_[key])) words.push_back(keys_[key].key->identity(show(key), row));
  }
  codes_[function] = identities_.number();
  if (by_code_.size() < identities_.size()) by_code_.resize(identities_.size());
  return codes_[function];
}

}  // namespace tacho::report
