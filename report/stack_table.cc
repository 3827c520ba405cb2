#include "report/stack_table.h"

#include <algorithm>
#include <cstring>

#include "format/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::size_t kPiece = std::size_t{1} << 16;  // words of memory taken at a time

bool is_kernel(std::uint8_t cpumode) { return cpumode == abi::kCpumodeKernel; }

}  // namespace

void StackTable::mappings_changed(std::uint32_t pid) {
  spaces_[pid] = next_space_++;
  last_space_ = 0;
}

void StackTable::kernel_changed() {
  spaces_.clear();
  kernel_space_ = next_space_++;
  last_space_ = 0;
}

std::uint32_t StackTable::space_of(std::uint32_t pid) {
  if (last_space_ != 0 && last_pid_ == pid) return last_space_;
  const auto [row, is_new] = spaces_.try_emplace(pid, next_space_);
  if (is_new) ++next_space_;
  last_pid_ = pid;
  last_space_ = row->second;
  return last_space_;
}

// Keeps a copy of `items` for good.
template <class T>
std::span<const T> StackTable::keep(std::span<const T> items) {
  if (items.empty()) return {};
  const std::size_t words = (items.size_bytes() + 7) / 8;
  if (words > memory_left_) {
    memory_left_ = std::max(words, kPiece);
    memory_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(memory_left_));
    free_ = memory_.back().get();
  }
  std::uint64_t* const to = free_;
  free_ += words;
  memory_left_ -= words;
  std::memcpy(to, items.data(), items.size_bytes());
  return {reinterpret_cast<const T*>(to), items.size()};
}

std::uint32_t StackTable::place(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode) {
  const std::uint64_t hash = mix(mix(reinterpret_cast<std::uintptr_t>(mapping), ip), cpumode);
  return by_place_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Location& known = locations_[number];
        return known.mapping == mapping && known.ip.value == ip && known.cpumode == cpumode;
      },
      [&] {
        const auto number = static_cast<std::uint32_t>(locations_.size());
        locations_.push_back({number, mapping, {ip}, cpumode});
        return number;
      });
}

std::uint32_t StackTable::location_of(const symbolize::AddressSpaces& spaces, std::uint32_t pid,
                                      std::uint64_t ip, std::uint8_t cpumode) {
  // All processes share the kernel's addresses.
  const std::uint32_t space = is_kernel(cpumode) ? kernel_space_ : space_of(pid);
  const std::uint64_t hash = mix(mix(space, ip), cpumode);
  const std::uint32_t row = by_address_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Address& known = addresses_[number];
        return known.ip == ip && known.space == space && known.cpumode == cpumode;
      },
      [&] {
        const auto* mapping = spaces.find(pid, {ip}, cpumode);
        addresses_.push_back({space, cpumode, ip, place(mapping, ip, cpumode)});
        return static_cast<std::uint32_t>(addresses_.size() - 1);
      });
  return addresses_[row].location;
}

const Location& StackTable::locate(const symbolize::AddressSpaces& spaces, std::uint32_t pid,
                                   std::uint64_t ip, std::uint8_t cpumode) {
  return locations_[location_of(spaces, pid, ip, cpumode)];
}

// Marks in the chain set the mode of the addresses after them. perf takes a mark that it does not know for a
// sign of a corrupt chain and shows none of it; so do we.
Stack StackTable::make_stack(const symbolize::AddressSpaces& spaces, std::uint32_t pid,
                             std::size_t max_frames) {
  frames_.clear();
  std::uint8_t cpumode = abi::kCpumodeUser;
  for (const std::uint64_t word : words_) {
    if (frames_.size() >= max_frames) break;
    if (word < abi::kContextMax) {
      frames_.push_back(location_of(spaces, pid, word, cpumode));
    } else if (word == abi::kContextKernel) {
      cpumode = abi::kCpumodeKernel;
    } else if (word == abi::kContextUser) {
      cpumode = abi::kCpumodeUser;
    } else if (word == abi::kContextHypervisor) {
      cpumode = abi::kCpumodeHypervisor;
    } else if (word == abi::kContextUserDeferred) {
      break;  // what follows is a cookie: the rest comes in a record of its own
    } else {
      frames_.clear();
      break;
    }
  }
  return {static_cast<std::uint32_t>(stacks_.size()), keep(std::span<const std::uint32_t>(frames_))};
}

const Stack& StackTable::stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                                  std::size_t max_frames) {
  const std::size_t size = sample.callchain.size();
  words_.resize(size);
  const std::uint32_t space = space_of(sample.pid);
  // Kernel mappings change rarely, but then for all: their version is part of every chain's key.
  std::uint64_t hash = mix(mix(space, kernel_space_), size);
  for (std::size_t i = 0; i < size; ++i) {
    words_[i] = sample.callchain[i];
    hash = mix(hash, words_[i]);
  }
  const std::uint32_t number = by_chain_.find_or_make(
      hash,
      [&](std::uint32_t row) {
        const Chain& known = chains_[row];
        return known.space == space && std::ranges::equal(known.words, words_);
      },
      [&] {
        stacks_.push_back(make_stack(spaces, sample.pid, max_frames));
        chains_.push_back({space, keep(std::span<const std::uint64_t>(words_))});
        return stacks_.back().number;
      });
  return stacks_[number];
}

}  // namespace tacho::report
