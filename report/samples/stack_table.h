// StackTable: interns call chains as lists of places.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "format/records/sample.h"
#include "report/samples/chain_digest.h"
#include "report/samples/index_table.h"
#include "report/samples/place_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// A sample's call chain as recorded, at most `most_frames` addresses of it; then what was unwound of it.
struct Chain {
  format::U64Array words;  // leaf first, with the kernel's marks
  std::span<const std::uint64_t> unwound;
  std::size_t most_frames = 127;
};

// Reads chains. It belongs to one thread.
class ChainReader {
 public:
  // Of a recorded chain that is too long, the outermost frames are kept instead of the innermost.
  void keep_callers() { keeps_callers_ = true; }
  // Distinguishes the sampled address from return addresses in recorded chains (PlaceTable::kCaller).
  void tell_callers() { tells_callers_ = true; }

  // The key of a chain in a version of an address space. Chains with equal keys count as equal: comparing
  // would need all of their words in memory.
  ChainDigest key_of(const Chain& chain, const symbolize::SpaceVersion& space);
  // Its frames, with the modes that PlaceTable has. Valid until the next call.
  std::span<const PlaceTable::Address> addresses_of(const Chain& chain);
  // The numbers of its frames in `places`. Valid until the next call.
  std::span<const std::uint32_t> frames_of(const Chain& chain, const symbolize::SpaceVersion& space,
                                           PlaceTable& places);

 private:
  void split(const Chain& chain);

  ChainHash hash_{format::random_word()};
  // By the version of its address space a chain gets another key, and by where unwound frames begin.
  std::uint64_t low_factor_ = format::random_word() | 1, high_factor_ = format::random_word() | 1;
  std::uint64_t length_factor_ = format::random_word() | 1;
  bool keeps_callers_ = false, tells_callers_ = false;
  std::vector<PlaceTable::Address> addresses_;  // scratch: the chain at hand
  std::vector<std::uint32_t> frames_;           // scratch
  std::vector<std::byte> words_;                // scratch: a chain's words and those unwound
};

// Numbers that stay where they are, in large pieces of memory.
class FrameStore {
 public:
  std::span<std::uint32_t> keep(std::span<const std::uint32_t> frames);

 private:
  std::vector<format::LargePiece<std::uint32_t>> memory_;
  std::uint32_t* free_ = nullptr;  // in the last piece
  std::size_t left_ = 0;           // numbers from there on
};

// Belongs to one thread. Stacks never change.
class StackTable {
 public:
  // `places` must outlive it: that is where the frames are numbers of.
  explicit StackTable(PlaceTable& places) : places_(&places) {}

  ChainReader& reader() { return reader_; }
  // Before the first lookup: chains with the same frames are one stack. For places that are few, as functions
  // are (NamesOf): then most chains are a stack that is known, and only those that were met lately are kept.
  void tell_by_frames();

  const Stack& stack_of(const Chain& chain, const symbolize::SpaceVersion& space);
  // The stack of frames: equal ones are one stack. Only with tell_by_frames().
  const Stack& stack_of_frames(std::span<const std::uint32_t> frames);
  // A stack of its own.
  const Stack& add(std::span<const std::uint32_t> frames);
  // Gives back the memory that telling chains apart takes: there are no more. Stacks stay.
  void end_lookups();

 private:
  struct Met {
    ChainDigest key;
    const Stack* stack = nullptr;
  };
  // By the high half, in which chains of equal words in two processes differ.
  std::size_t place_of(const ChainDigest& key, std::size_t size) const { return key.low >> 32 & (size - 1); }

  PlaceTable* places_;
  ChainReader reader_;
  IndexTable by_chain_, by_frames_;
  StableArray<ChainDigest> keys_;  // of the stacks from first_key_ on, by number
  StableArray<Stack> stacks_;
  FrameStore frames_;
  // With tell_by_frames(), in place of by_chain_ and keys_: a power of two of chains, by the bits of their
  // keys. Each takes the place of one before.
  std::vector<Met, format::LargePages<Met>> met_;
  std::size_t first_key_ = 0;  // number of the first stack that is told apart: those of earlier runs are not
  bool is_by_frames_ = false;
};

}  // namespace tacho::report
