#include "report/samples/chain_reader.h"

#define XXH_INLINE_ALL  // most chains are short: calling the library would cost as much as hashing them
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// The cpumode of the addresses after a mark; nullopt: an unknown mark.
std::optional<std::uint8_t> cpumode_after(std::uint64_t mark) {
  if (mark == abi::kContextKernel) return abi::kCpumodeKernel;
  if (mark == abi::kContextUser) return abi::kCpumodeUser;
  if (mark == abi::kContextHypervisor) return abi::kCpumodeHypervisor;
  return std::nullopt;
}

}  // namespace

ChainHash::ChainHash(std::uint64_t seed) : seed_(seed) {
  static_assert(sizeof secret_ == XXH3_SECRET_DEFAULT_SIZE);
  XXH3_generateSecret_fromSeed(secret_.data(), seed_);
}

ChainDigest ChainHash::operator()(format::Bytes words) const {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecretandSeed(words.data(), words.size(), secret_.data(), secret_.size(), seed_);
  return {hash.low64, hash.high64};
}

ChainDigest ChainReader::key_of(const Chain& chain, const symbolize::SpaceVersion& space) {
  const format::Bytes recorded = chain.words.bytes();
  const std::uint64_t version = space.number();
  ChainDigest words;
  if (chain.unwound.empty()) {
    words = hash_(recorded);
  } else {
    const format::Bytes more = std::as_bytes(chain.unwound);
    words_.assign(recorded.begin(), recorded.end());
    words_.insert(words_.end(), more.begin(), more.end());
    words = hash_(words_);
    words.high += (recorded.size() + 1) * length_factor_;
  }
  return {words.low + version * low_factor_, words.high + version * high_factor_};
}

// A PERF_CONTEXT_* mark sets the mode of the addresses after it. The first one is where the code was
// interrupted or entered the kernel; the following ones are return addresses. As in perf, a chain with an
// unknown mark is corrupt and shows no frames.
void ChainReader::split(const Chain& chain) {
  addresses_.clear();
  std::uint8_t cpumode = abi::kCpumodeUser;
  bool is_caller = false;
  const std::size_t size = chain.words.size();
  for (std::size_t i = 0; i < size && (keeps_outermost_ || addresses_.size() < chain.max_frames); ++i) {
    const std::uint64_t word = chain.words[i];
    if (word < abi::kContextMax) {
      const bool is_return = is_caller && flags_return_addresses_ && word != 0;
      addresses_.push_back(
          {word, static_cast<std::uint8_t>(cpumode | (is_return ? LocationTable::kCaller : 0))});
      is_caller = true;
      continue;
    }
    is_caller = false;
    if (word == abi::kContextUserDeferred)
      break;  // a cookie follows: the user part comes in a CALLCHAIN_DEFERRED record
    const std::optional<std::uint8_t> after = cpumode_after(word);
    if (!after) {
      addresses_.clear();
      break;
    }
    cpumode = *after;
  }
  if (addresses_.size() > chain.max_frames)
    addresses_.erase(addresses_.begin(), addresses_.end() - static_cast<std::ptrdiff_t>(chain.max_frames));
}

std::optional<LocationTable::Address> first_address(const Chain& chain) {
  std::uint8_t cpumode = abi::kCpumodeUser;
  for (std::size_t i = 0; i < chain.words.size(); ++i) {
    const std::uint64_t word = chain.words[i];
    if (word < abi::kContextMax) return LocationTable::Address{word, cpumode};
    cpumode = cpumode_after(word).value_or(cpumode);
  }
  if (chain.unwound.empty()) return std::nullopt;
  return LocationTable::Address{chain.unwound[0], abi::kCpumodeUser | LocationTable::kUnwound};
}

std::span<const LocationTable::Address> ChainReader::addresses_of(const Chain& chain) {
  split(chain);
  for (const std::uint64_t ip : chain.unwound)
    addresses_.push_back({ip, abi::kCpumodeUser | LocationTable::kUnwound});
  return addresses_;
}

std::span<const LocationId> ChainReader::frames_of(const Chain& chain, const symbolize::SpaceVersion& space,
                                                   LocationTable& location_table) {
  location_table.find_all(space, addresses_of(chain), frames_);
  return frames_;
}

}  // namespace tacho::report
