#include "report/profile/entry_index.h"

#include <algorithm>

namespace tacho::report {

bool IdentityRows::is_at(std::uint32_t number) const {
  return std::ranges::equal(std::span(known_).subspan(number * words_.size(), words_.size()), words_);
}

std::uint32_t IdentityRows::append() {
  known_.insert(known_.end(), words_.begin(), words_.end());
  return size_++;
}

std::uint32_t IdentityRows::number() {
  if (has_forgotten_) return size_++;
  if (size_ > 0 && is_at(last_)) return last_;
  constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 21;
  if (!words_.empty() && words_.back() < kMostNumbers) {
    const auto word = static_cast<std::size_t>(words_.back());
    if (word >= by_last_word_.size())
      by_last_word_.resize(std::max(word + 1, 2 * by_last_word_.size()), kNone);
    std::uint32_t& first = by_last_word_[word];
    if (first == kNone) return last_ = first = append();
    if (is_at(first)) return last_ = first;
  }
  std::uint64_t hash = words_.size();
  for (const std::uint64_t word : words_) hash = by_words_.hash.add(hash, word);
  return last_ = by_words_.find_or_make(
             hash, [this](std::uint32_t number) { return is_at(number); }, [this] { return append(); });
}

EntryIndex::EntryIndex(std::span<const KeyUse> keys, const SampleFacts& facts, const FunctionTable& functions)
    : keys_(keys), facts_(&facts), functions_(&functions) {}

void EntryIndex::begin_group() {
  if (++group_ != 0) return;
  std::ranges::fill(by_function_, Slot());
  std::ranges::fill(by_code_, Slot());
  group_ = 1;
}

void EntryIndex::learn_functions() {
  for (; learned_ < functions_->size(); ++learned_) code_of(FunctionId{learned_});
  if (functions_->has_ended()) identities_.forget();
}

std::uint32_t EntryIndex::make_code(FunctionId function) {
  RowFacts row;
  row.function = &(*functions_)[function];
  auto& words = identities_.begin();
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    if (is_of_function(keys_[key])) words.push_back(keys_[key].key->identity(show(key), row));
  }
  return codes_[function] = identities_.number();
}

}  // namespace tacho::report
