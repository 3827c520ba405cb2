// Every distinct place and call chain of a capture, once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/large_pages.h"
#include "format/sample.h"
#include "report/samples/address_table.h"
#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"

namespace tacho::report {

class StackTable {
 public:
  StackTable();
  // Mappings of `pid` (all processes: of the kernel) changed: what is looked up from now on may lie
  // elsewhere.
  void mappings_changed(std::uint32_t pid);
  void kernel_changed();

  const Location& locate(const symbolize::AddressSpaces& spaces, std::uint32_t pid, std::uint64_t ip,
                         std::uint8_t cpumode);
  // The sample's call chain as recorded, at most `max_frames` addresses of it; then what was unwound of it.
  const Stack& stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                        std::span<const std::uint64_t> unwound, std::size_t max_frames);
  // Of numbers that were given out before, from any thread.
  const Location& location(std::uint32_t number) const { return locations_[number]; }

 private:
  // What a chain was made of: its address space's version and its words, in 128 bits. Keeping the words to
  // compare them would take more memory than all else here; two chains have the same digest with a chance of
  // less than 2^-60 in any capture, whoever made it, as the seed is drawn anew for each run.
  struct Digest {
    std::uint64_t mixed = 0, rolled = 0;
    bool operator==(const Digest&) const = default;
  };
  static Digest digest_of(format::Bytes bytes, const Digest& before);
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

  std::unordered_map<std::uint32_t, std::uint32_t> spaces_;  // pid -> number of its address space's version
  std::uint32_t next_space_ = 1;
  std::uint32_t kernel_space_ = 0;
  std::uint32_t last_pid_ = 0, last_space_ = 0;  // 0: nothing remembered

  AddressTable by_address_;
  IndexTable by_place_, by_chain_;
  StableArray<Location> locations_;
  StableArray<Stack> stacks_;
  StableArray<Digest> digests_;  // one for each stack
  std::uint64_t seed_ = 0;
  struct Address {
    std::uint64_t ip = 0;
    std::uint8_t cpumode = 0;
  };
  std::vector<Address> addresses_;     // scratch: the chain at hand
  std::vector<std::uint32_t> frames_;  // scratch
  std::vector<format::LargePiece<std::uint64_t>> memory_;
  std::uint64_t* free_ = nullptr;  // in the last piece
  std::size_t memory_left_ = 0;    // words from there on
};

}  // namespace tacho::report
