#include "report/samples/stack_table.h"

#include <algorithm>

namespace tacho::report {

void StackTable::merge_by_frames() {
  constexpr std::size_t kCached = std::size_t{1} << 16;  // 2 MB, which stays in a processor's cache
  is_by_frames_ = true;
  cache_.resize(kCached);
}

void StackTable::end_lookups() {
  by_chain_.forget();
  by_frames_.forget();
  keys_ = {};
  first_key_ = stacks_.size();
  decltype(cache_)(cache_.empty() ? 0 : 1).swap(cache_);
}

const Stack& StackTable::add_stack(std::span<const LocationId> frames) {
  return stacks_[stacks_.push_back({stacks_.next_id(), frames_.keep(frames)})];
}

const Stack& StackTable::intern(std::span<const LocationId> frames) {
  std::uint64_t hash = frames.size();
  for (const LocationId frame : frames) hash = by_frames_.hash.add(hash, value_of(frame));
  return stacks_[by_frames_.find_or_make(
      hash, [&](StackId known) { return std::ranges::equal(stacks_[known].frames, frames); },
      [&] { return add_stack(frames).id; })];
}

const Stack& StackTable::stack_of(const Chain& chain, const symbolize::SpaceVersion& space) {
  const ChainDigest key = reader_.key_of(chain, space);
  if (is_by_frames_) {
    Cached& cached = cache_[slot_of(key, cache_.size())];
    if (cached.stack == nullptr || cached.key != key)
      cached = {key, &intern(reader_.frames_of(chain, space, *location_table_))};
    return *cached.stack;
  }
  return stacks_[by_chain_.find_or_make(
      by_chain_.hash(key.low), [&](StackId known) { return keys_[index_of(known) - first_key_] == key; },
      [&] {
        keys_.push_back(key);
        return add_stack(reader_.frames_of(chain, space, *location_table_)).id;
      })];
}

}  // namespace tacho::report
