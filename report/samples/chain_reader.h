// ChainReader: the addresses of a recorded call chain, their locations, and the chain's digest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/seeded_hash.h"
#include "report/samples/filter.h"
#include "report/samples/location_table.h"
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

}  // namespace tacho::report
