#include "report/samples/stack_table.h"

#include <algorithm>
#include <cstring>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Words of memory taken at a time: few for a small capture, then large pages.
constexpr std::size_t kFirstPiece = std::size_t{1} << 14,
                      kPiece = 2 * format::kLargePage / sizeof(std::uint64_t);

}  // namespace

void StackTable::mappings_changed(std::uint32_t pid) {
  spaces_[pid] = next_space_++;
  recent_[pid % recent_.size()] = {};
}

void StackTable::kernel_changed() {
  spaces_.clear();
  kernel_space_ = next_space_++;
  recent_.fill({});
}

std::uint32_t StackTable::space_of(std::uint32_t pid) {
  Recent& recent = recent_[pid % recent_.size()];
  if (recent.space != 0 && recent.pid == pid) return recent.space;
  const auto [row, is_new] = spaces_.try_emplace(pid, next_space_);
  if (is_new) ++next_space_;
  recent = {pid, row->second};
  return row->second;
}

// Keeps a copy of `items` for good.
template <class T>
std::span<const T> StackTable::keep(std::span<const T> items) {
  if (items.empty()) return {};
  const std::size_t words = (items.size_bytes() + 7) / 8;
  if (words > memory_left_) {
    memory_left_ = std::max(words, memory_.empty() ? kFirstPiece : kPiece);
    memory_.push_back(format::make_large_piece<std::uint64_t>(memory_left_));
    free_ = memory_.back().get();
  }
  std::uint64_t* const to = free_;
  free_ += words;
  memory_left_ -= words;
  std::memcpy(to, items.data(), items.size_bytes());
  return {reinterpret_cast<const T*>(to), items.size()};
}

// Marks in the chain set the mode of the addresses after them. The first address after a mark is where code
// was interrupted or called the kernel, those behind it are return addresses. perf takes a mark that it does
// not know for a sign of a corrupt chain and shows none of it; so do we.
void StackTable::split_chain(const format::U64Array& chain, std::size_t max_frames) {
  addresses_.clear();
  std::uint8_t cpumode = abi::kCpumodeUser;
  bool is_caller = false;
  for (std::size_t i = 0; i < chain.size() && (keeps_callers_ || addresses_.size() < max_frames); ++i) {
    const std::uint64_t word = chain[i];
    if (word < abi::kContextMax) {
      const bool is_return = is_caller && tells_callers_ && word != 0;
      addresses_.push_back(
          {word, static_cast<std::uint8_t>(cpumode | (is_return ? PlaceTable::kCaller : 0))});
      is_caller = true;
      continue;
    }
    is_caller = false;
    if (word == abi::kContextKernel) {
      cpumode = abi::kCpumodeKernel;
    } else if (word == abi::kContextUser) {
      cpumode = abi::kCpumodeUser;
    } else if (word == abi::kContextHypervisor) {
      cpumode = abi::kCpumodeHypervisor;
    } else if (word == abi::kContextUserDeferred) {
      break;  // what follows is a cookie: the rest comes in a record of its own
    } else {
      addresses_.clear();
      break;
    }
  }
  if (addresses_.size() > max_frames)
    addresses_.erase(addresses_.begin(), addresses_.end() - static_cast<std::ptrdiff_t>(max_frames));
}

void StackTable::tell_by_frames() {
  constexpr std::size_t kMet = std::size_t{1} << 16;  // 2 MB, which stays in a processor's cache
  is_by_frames_ = true;
  met_.resize(kMet);
}

void StackTable::let_pass() {
  constexpr std::size_t kMet = std::size_t{1}
                               << 15;  // 1 MB: more than passing_ holds of stacks with 10 frames
  is_passing_ = true;
  met_.resize(kMet);
}

void StackTable::end_lookups() {
  by_chain_.forget();
  by_frames_.forget();
  keys_ = {};
  first_key_ = stacks_.size();
  decltype(met_)(met_.empty() ? 0 : 1).swap(met_);
}

std::uint32_t StackTable::append_stack() {
  const auto number = static_cast<std::uint32_t>(stacks_.size());
  stacks_.push_back({number, keep(std::span<const std::uint32_t>(frames_))});
  return number;
}

void StackTable::find_frames(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                             std::span<const std::uint64_t> unwound, std::size_t max_frames) {
  split_chain(sample.callchain, max_frames);
  for (const std::uint64_t ip : unwound) addresses_.push_back({ip, abi::kCpumodeUser | PlaceTable::kUnwound});
  places_->find_all(spaces, sample.pid, addresses_, frames_);
}

// Its number.
std::uint32_t StackTable::make_stack(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                                     std::span<const std::uint64_t> unwound, std::size_t max_frames) {
  find_frames(spaces, sample, unwound, max_frames);
  if (!is_by_frames_) return append_stack();
  std::uint64_t hash = frames_.size();
  for (const std::uint32_t frame : frames_) hash = by_frames_.hash.add(hash, frame);
  return by_frames_.find_or_make(
      hash, [&](std::uint32_t known) { return std::ranges::equal(stacks_[known].frames, frames_); },
      [&] { return append_stack(); });
}

// The key of a chain of the process as it is now. Kernel mappings change rarely, but then for all: their
// version is part of every key.
StackTable::StackKey StackTable::in_space(const ChainDigest& words, std::uint32_t pid) {
  const std::uint64_t space = std::uint64_t{space_of(pid)} << 32 | kernel_space_;
  return {words.low + space * low_factor_, words.high + space * high_factor_};
}

// Where the chain belongs is fetched now; what stands there, when the next ones are expected.
void StackTable::expect(std::uint32_t pid, format::Bytes chain, std::uint64_t due) {
  constexpr std::uint64_t kBefore = 2;
  Expected& expected = expected_[due % expected_.size()];
  expected = {.due = due, .chain = chain, .words = chain_digest(chain, seed_), .key = {}};
  expected.key = in_space(expected.words, pid);
  if (is_by_frames_ || is_passing_) return __builtin_prefetch(&met_at(expected.key));
  expected.hash = by_chain_.hash(expected.key.low);
  by_chain_.prefetch(expected.hash);
  const Expected& earlier = expected_[(due - kBefore) % expected_.size()];
  if (earlier.due != due - kBefore) return;
  if (const std::uint32_t guess = by_chain_.guess(earlier.hash); guess != IndexTable::kNone)
    __builtin_prefetch(&keys_[guess - first_key_]);
}

ChainDigest StackTable::digest_of(format::Bytes chain, std::uint64_t due) const {
  const Expected& expected = expected_[due % expected_.size()];
  const bool is_it = due != 0 && expected.due == due && expected.chain.data() == chain.data() &&
                     expected.chain.size() == chain.size();
  return is_it ? expected.words : chain_digest(chain, seed_);
}

StackTable::StackKey StackTable::key_of(const format::Sample& sample, std::span<const std::uint64_t> unwound,
                                        std::uint64_t due) {
  const format::Bytes recorded = sample.callchain.bytes();
  if (unwound.empty()) return in_space(digest_of(recorded, due), sample.pid);
  const format::Bytes more = std::as_bytes(unwound);
  words_.assign(recorded.begin(), recorded.end());
  words_.insert(words_.end(), more.begin(), more.end());
  // Where the one ends and the other begins is part of it.
  return in_space(chain_digest(words_, seed_ + recorded.size() + 1), sample.pid);
}

const Stack& StackTable::stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                                  std::span<const std::uint64_t> unwound, std::size_t max_frames,
                                  std::uint64_t due) {
  const StackKey key = key_of(sample, unwound, due);
  if (is_by_frames_) {
    Met& met = met_at(key);
    if (met.stack == nullptr || met.key != key)
      met = {.key = key, .stack = &stacks_[make_stack(spaces, sample, unwound, max_frames)]};
    return *met.stack;
  }
  if (is_passing_) {
    Met& met = met_at(last_ = key);
    if (met.key != key || !passing_.holds(met.piece)) {
      find_frames(spaces, sample, unwound, max_frames);
      const PassingStacks::Place made = passing_.make(next_passing_++, frames_);
      met = {key, made.stack, made.piece};
    }
    return *met.stack;
  }
  const std::uint32_t number = by_chain_.find_or_make(
      by_chain_.hash(key.low), [&](std::uint32_t known) { return keys_[known - first_key_] == key; },
      [&] {
        keys_.push_back(key);
        return make_stack(spaces, sample, unwound, max_frames);
      });
  return stacks_[number];
}

}  // namespace tacho::report
