// Every distinct place and call chain of a capture, once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/large_pages.h"
#include "format/sample.h"
#include "format/seeded_hash.h"
#include "report/samples/address_table.h"
#include "report/samples/chain_digest.h"
#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// One thread writes it. Places and stacks never change once they are made, so pointers and numbers of them
// may go to another thread, which reads places from locations().
class StackTable {
 public:
  // Before the first lookup: a place of a module that processes loaded at different addresses is a place for
  // each address, and not one.
  void keep_addresses() { keeps_addresses_ = true; }
  // Of a recorded chain that is too long, the outermost frames are kept instead of the innermost.
  void keep_callers() { keeps_callers_ = true; }
  // The mappings of process `pid` changed: its addresses are looked up anew from now on.
  void mappings_changed(std::uint32_t pid);
  // The kernel's mappings changed: the same for the addresses of every process.
  void kernel_changed();

  // The place of an address of process `pid`, by what is mapped now.
  const Location& locate(const symbolize::AddressSpaces& spaces, std::uint32_t pid, std::uint64_t ip,
                         std::uint8_t cpumode);
  // The sample's call chain as recorded, at most `max_frames` addresses of it; then what was unwound of it.
  const Stack& stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                        std::span<const std::uint64_t> unwound, std::size_t max_frames);
  const StableArray<Location>& locations() const { return locations_; }

 private:
  // Chains with equal keys are taken for the same chain: their words are not kept to be compared, as that
  // would take more memory than everything else here.
  struct StackKey {
    ChainDigest words;
    std::uint64_t space =
        0;  // version of the process's mappings in the upper half, the kernel's in the lower
    bool operator==(const StackKey&) const = default;
  };
  StackKey key_of(const format::Sample& sample, std::span<const std::uint64_t> unwound);
  std::uint32_t space_of(std::uint32_t pid);
  std::uint32_t place(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode);
  std::uint32_t location_of(const symbolize::AddressSpaces& spaces, std::uint32_t pid, std::uint64_t ip,
                            std::uint8_t cpumode);
  std::uint32_t key_space(std::uint32_t pid, std::uint8_t cpumode);
  void split_chain(const format::U64Array& chain, std::uint32_t pid, std::size_t max_frames);
  Stack make_stack(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                   std::span<const std::uint64_t> unwound, std::size_t max_frames);
  template <class T>
  std::span<const T> keep(std::span<const T> items);

  // pid -> number of its address space's version
  std::unordered_map<std::uint32_t, std::uint32_t, format::SeededHash> spaces_;
  std::uint32_t next_space_ = 1;
  std::uint32_t kernel_space_ = 0;
  std::uint32_t last_pid_ = 0, last_space_ = 0;  // 0: nothing remembered

  AddressTable by_address_;
  IndexTable by_place_, by_chain_;
  StableArray<Location> locations_;
  StableArray<Stack> stacks_;
  StableArray<StackKey> keys_;  // one for each stack
  std::uint64_t seed_ = format::random_word();
  bool keeps_addresses_ = false, keeps_callers_ = false;
  struct Address {
    std::uint64_t ip = 0;
    std::uint8_t cpumode = 0;
  };
  std::vector<Address> addresses_;     // scratch: the chain at hand
  std::vector<std::uint32_t> frames_;  // scratch
  std::vector<std::byte> words_;       // scratch: a chain's words and those unwound
  std::vector<format::LargePiece<std::uint64_t>> memory_;
  std::uint64_t* free_ = nullptr;  // in the last piece
  std::size_t memory_left_ = 0;    // words from there on
};

}  // namespace tacho::report
