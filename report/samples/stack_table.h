// StackTable: interns call chains as lists of locations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"
#include "format/records/sample.h"
#include "report/samples/filter.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

// 128-bit digest of a call chain; it is kept instead of the chain.
struct ChainDigest {
  std::uint64_t low = 0, high = 0;
  bool operator==(const ChainDigest&) const = default;
};

// XXH3 of 128 bits. The probability of a collision among a million chains is about 2^-89. XXH3 is not
// cryptographic; the random seed prevents collisions constructed by a hostile capture.
class ChainHash {
 public:
  explicit ChainHash(std::uint64_t seed);
  ChainDigest operator()(format::Bytes words) const;

 private:
  std::uint64_t seed_;
  alignas(64)
      std::array<std::byte, 192> secret_;  // derived from the seed; XXH3 needs it for inputs over 240 bytes
};

// A sample's call chain: at most `max_frames` recorded addresses, then those found by unwinding.
struct Chain {
  format::U64Array words;  // leaf first, with PERF_CONTEXT_* marks
  std::span<const std::uint64_t> unwound;
  std::size_t max_frames = std::size_t{1} << 16;  // no record has room for more
};

// The leaf of a chain; nullopt: it has no address.
std::optional<LocationTable::Address> first_address(const Chain& chain);

// Belongs to one thread.
class ChainReader {
 public:
  // Before the first chain. Callers::ByCall: return addresses in recorded chains get LocationTable::kCaller.
  void use(const SampleOptions& options, const symbolize::SymbolOptions& symbols) {
    keeps_outermost_ = options.keeps_callers;
    flags_return_addresses_ = symbols.callers == symbolize::Callers::ByCall;
  }

  // The digest of a chain in a version of an address space. Chains with equal digests count as equal, since
  // comparing them would keep all of their words in memory.
  ChainDigest key_of(const Chain& chain, const symbolize::SpaceVersion& space);
  // The chain's addresses, each with its cpumode and LocationTable's flags. Valid until the next call.
  std::span<const LocationTable::Address> addresses_of(const Chain& chain);
  // The locations of its frames in `location_table`. Valid until the next call.
  std::span<const LocationId> frames_of(const Chain& chain, const symbolize::SpaceVersion& space,
                                        LocationTable& location_table);

 private:
  void split(const Chain& chain);

  ChainHash hash_{format::random_word()};
  // Random multipliers that mix into the digest: the address-space version (low, high), and the number of
  // recorded words (length).
  std::uint64_t low_factor_ = format::random_word() | 1, high_factor_ = format::random_word() | 1;
  std::uint64_t length_factor_ = format::random_word() | 1;
  bool keeps_outermost_ = false, flags_return_addresses_ = false;
  std::vector<LocationTable::Address> addresses_;  // scratch: the current chain
  std::vector<LocationId> frames_;                 // scratch
  std::vector<std::byte> words_;                   // scratch: recorded and unwound words
};

// Belongs to one thread. Stacks never change.
class StackTable {
 public:
  // `location_table` has the locations of frames, and must outlive it.
  explicit StackTable(LocationTable& location_table) : location_table_(&location_table) {}

  ChainReader& reader() { return reader_; }
  // Before the first lookup: chains with the same frames are one stack, and digests are kept in a small
  // cache. For merged locations (FunctionMerging): then there are few stacks for many chains.
  void merge_by_frames();

  const Stack& stack_of(const Chain& chain, const symbolize::SpaceVersion& space);
  // The stack with these frames, which is made if it is new. Only with merge_by_frames().
  const Stack& intern(std::span<const LocationId> frames);
  // Appends a stack without looking for an equal one.
  const Stack& add_stack(std::span<const LocationId> frames);
  // Frees everything but the stacks. Equal chains of a later run (of a pipe) become new stacks.
  void end_lookups();

 private:
  struct Cached {
    ChainDigest key;
    const Stack* stack = nullptr;
  };
  // Uses the high half of key.low, in which equal chains of two address spaces differ.
  std::size_t slot_of(const ChainDigest& key, std::size_t size) const { return key.low >> 32 & (size - 1); }

  LocationTable* location_table_;
  ChainReader reader_;
  IndexTable<StackId> by_chain_, by_frames_;
  StableArray<ChainDigest> keys_;  // of the stacks from first_key_ on
  StableArray<Stack, StackId> stacks_;
  ListStore<LocationId> frames_;
  // With merge_by_frames(), in place of by_chain_ and keys_: a direct-mapped cache, whose size is a power of
  // two.
  std::vector<Cached, format::LargePages<Cached>> cache_;
  std::size_t first_key_ = 0;  // index of the first stack of this run
  bool is_by_frames_ = false;
};

}  // namespace tacho::report
