// Every distinct call chain of a capture, once; or for views that keep none, those that were met lately.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "format/records/sample.h"
#include "report/samples/chain_digest.h"
#include "report/samples/index_table.h"
#include "report/samples/passing_stacks.h"
#include "report/samples/place_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// One thread writes it. Stacks never change once they are made, so pointers and numbers of them may go to
// another thread; with let_pass(), together with their memory.
class StackTable {
 public:
  // `places` must outlive it: that is where the frames are numbers of.
  explicit StackTable(PlaceTable& places) : places_(&places) {}

  // Of a recorded chain that is too long, the outermost frames are kept instead of the innermost.
  void keep_callers() { keeps_callers_ = true; }
  // Frames of recorded chains are told apart by whether they were sampled or called (PlaceTable::kCaller).
  void tell_callers() { tells_callers_ = true; }
  // Before the first lookup: chains with the same frames are one stack. For places that are few, as functions
  // are (NamesOf): then most chains are a stack that is known, and only those that were met lately are kept.
  void tell_by_frames();
  // Before the first lookup: nobody keeps stacks. Few chains come again that were not met lately: these are
  // made anew, and get another number.
  void let_pass();
  // The mappings of process `pid` changed: its chains are looked up anew from now on.
  void mappings_changed(std::uint32_t pid);
  // The kernel's mappings changed: the same for the chains of every process.
  void kernel_changed();

  // A chain of process `pid` that stack_of() will be asked for, as recorded: what it reads then is fetched.
  // `due`, above 0, is what tells it from all others.
  void expect(std::uint32_t pid, format::Bytes chain, std::uint64_t due);
  // The sample's call chain as recorded, at most `max_frames` addresses of it; then what was unwound of it.
  // `due`: of expect(), if it was told; 0: it was not.
  const Stack& stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                        std::span<const std::uint64_t> unwound, std::size_t max_frames,
                        std::uint64_t due = 0);
  // What keeps the stack that was asked for last; null: this does.
  const StackMemory* memory() const { return is_passing_ ? &passing_.memory(met_at(last_).piece) : nullptr; }
  // Gives back the memory that telling chains apart takes: there are no more. Stacks stay.
  void end_lookups();

 private:
  // Chains with equal keys are taken for the same chain of the same address space: their words are not kept
  // to be compared, as that would take more memory than everything else here.
  using StackKey = ChainDigest;
  struct Met {
    StackKey key;
    const Stack* stack = nullptr;
    std::uint64_t piece = 0;  // in passing_
  };
  // By the high half: the same chains of two processes differ in no other bits of `low`.
  Met& met_at(const StackKey& key) { return met_[key.low >> 32 & (met_.size() - 1)]; }
  const Met& met_at(const StackKey& key) const { return met_[key.low >> 32 & (met_.size() - 1)]; }
  struct Expected {
    std::uint64_t due = 0;  // 0: nothing
    format::Bytes chain;
    ChainDigest words;
    StackKey key;
    std::uint64_t hash = 0;
  };
  StackKey key_of(const format::Sample& sample, std::span<const std::uint64_t> unwound, std::uint64_t due);
  ChainDigest digest_of(format::Bytes chain, std::uint64_t due) const;
  StackKey in_space(const ChainDigest& words, std::uint32_t pid);
  std::uint32_t space_of(std::uint32_t pid);
  void split_chain(const format::U64Array& chain, std::size_t max_frames);
  void find_frames(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                   std::span<const std::uint64_t> unwound, std::size_t max_frames);
  std::uint32_t make_stack(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                           std::span<const std::uint64_t> unwound, std::size_t max_frames);
  std::uint32_t append_stack();
  template <class T>
  std::span<const T> keep(std::span<const T> items);

  // pid -> number of its address space's version
  std::unordered_map<std::uint32_t, std::uint32_t, format::SeededHash> spaces_;
  std::uint32_t next_space_ = 1;
  std::uint32_t kernel_space_ = 0;
  struct Recent {
    std::uint32_t pid = 0, space = 0;  // 0: nothing remembered
  };
  std::array<Recent, 64> recent_{};  // some of spaces_, by the low bits of the pid

  PlaceTable* places_;
  IndexTable by_chain_;
  StableArray<StackKey> keys_;  // of the stacks from first_key_ on, by number
  StableArray<Stack> stacks_;
  // With tell_by_frames() and let_pass(), in place of by_chain_ and keys_: a power of two of chains, by the
  // bits of their keys. Each takes the place of one before.
  std::vector<Met, format::LargePages<Met>> met_;
  IndexTable by_frames_;
  PassingStacks passing_;
  std::size_t first_key_ = 0;  // number of the first stack that is told apart: those of earlier runs are not
  std::uint32_t next_passing_ = 0;  // number
  StackKey last_;                   // with let_pass(): of the stack that was asked for last
  std::uint64_t seed_ = format::random_word();
  // By the version of its address space a chain gets another key.
  std::uint64_t low_factor_ = format::random_word() | 1, high_factor_ = format::random_word() | 1;
  std::array<Expected, 8> expected_;  // the last, by what they are due at
  bool keeps_callers_ = false, tells_callers_ = false, is_by_frames_ = false, is_passing_ = false;
  std::vector<PlaceTable::Address> addresses_;  // scratch: the chain at hand
  std::vector<std::uint32_t> frames_;           // scratch
  std::vector<std::byte> words_;                // scratch: a chain's words and those unwound
  std::vector<format::LargePiece<std::uint64_t>> memory_;
  std::uint64_t* free_ = nullptr;  // in the last piece
  std::size_t memory_left_ = 0;    // words from there on
};

}  // namespace tacho::report
