#include "report/samples/stack_table.h"

#include <algorithm>
#include <cstring>

#include "format/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Words of memory taken at a time: few for a small capture, then large pages.
constexpr std::size_t kFirstPiece = std::size_t{1} << 14,
                      kPiece = 2 * format::kLargePage / sizeof(std::uint64_t);

// A mode has three bits. This one beside them marks an address that was found by unwinding: it gets a
// location of its own, as such frames show inlined calls.
constexpr std::uint8_t kUnwound = 8, kModeBits = 7;

bool is_kernel(std::uint8_t cpumode) { return cpumode == abi::kCpumodeKernel; }

// Kernel code of every kind; two mappings of it may share a module, and are told apart by where they lie.
bool runs_where_it_is_shown(const symbolize::Mapping& mapping) {
  using symbolize::ModuleKind;
  const ModuleKind kind = mapping.module->kind;
  return mapping.is_identity || kind == ModuleKind::Kernel || kind == ModuleKind::KernelModule ||
         kind == ModuleKind::Bpf || kind == ModuleKind::GuestKernel;
}

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

// What an address of user code stands for depends on the module and the place in it alone: processes that run
// the same file at different addresses share its locations.
std::uint32_t StackTable::place(const symbolize::Mapping* mapping, std::uint64_t ip, std::uint8_t cpumode) {
  const bool is_shared = mapping != nullptr && !runs_where_it_is_shown(*mapping);
  const void* const owner = is_shared ? static_cast<const void*>(mapping->module) : mapping;
  const std::uint64_t address = is_shared ? mapping->shown_address({ip}) : ip;
  std::uint64_t hash = mix(mix(mix(seed_, reinterpret_cast<std::uintptr_t>(owner)), address), cpumode);
  if (keeps_addresses_) hash = mix(hash, ip);
  return by_place_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Location& known = locations_[number];
        if ((known.cpumode | (known.is_unwound ? kUnwound : 0)) != cpumode) return false;
        if (!is_shared) return known.mapping == mapping && known.ip.value == ip;
        if (keeps_addresses_ && known.ip.value != ip) return false;
        return known.mapping != nullptr && known.mapping->module == mapping->module &&
               known.mapping->shown_address(known.ip) == address;
      },
      [&] {
        const auto number = static_cast<std::uint32_t>(locations_.size());
        const auto mode = static_cast<std::uint8_t>(cpumode & kModeBits);
        locations_.push_back({number, mapping, {ip}, mode, (cpumode & kUnwound) != 0});
        return number;
      });
}

// All processes share the kernel's addresses.
std::uint32_t StackTable::key_space(std::uint32_t pid, std::uint8_t cpumode) {
  const std::uint32_t space = is_kernel(cpumode) ? kernel_space_ : space_of(pid);
  return space << 4 | (cpumode & (kUnwound | kModeBits));
}

std::uint32_t StackTable::location_of(const symbolize::AddressSpaces& spaces, std::uint32_t pid,
                                      std::uint64_t ip, std::uint8_t cpumode) {
  return by_address_.find_or_make(key_space(pid, cpumode), ip, [&] {
    return place(spaces.find(pid, {ip}, cpumode & kModeBits), ip, cpumode);
  });
}

const Location& StackTable::locate(const symbolize::AddressSpaces& spaces, std::uint32_t pid,
                                   std::uint64_t ip, std::uint8_t cpumode) {
  return locations_[location_of(spaces, pid, ip, cpumode)];
}

// Marks in the chain set the mode of the addresses after them. perf takes a mark that it does not know for a
// sign of a corrupt chain and shows none of it; so do we.
void StackTable::split_chain(const format::U64Array& chain, std::uint32_t pid, std::size_t max_frames) {
  addresses_.clear();
  std::uint8_t cpumode = abi::kCpumodeUser;
  for (std::size_t i = 0; i < chain.size() && (keeps_callers_ || addresses_.size() < max_frames); ++i) {
    const std::uint64_t word = chain[i];
    if (word < abi::kContextMax) {
      by_address_.prefetch(key_space(pid, cpumode), word);
      addresses_.push_back({word, cpumode});
    } else if (word == abi::kContextKernel) {
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

Stack StackTable::make_stack(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                             std::span<const std::uint64_t> unwound, std::size_t max_frames) {
  split_chain(sample.callchain, sample.pid, max_frames);
  for (const std::uint64_t ip : unwound) addresses_.push_back({ip, abi::kCpumodeUser | kUnwound});
  frames_.clear();
  for (const Address& address : addresses_)
    frames_.push_back(location_of(spaces, sample.pid, address.ip, address.cpumode));
  return {static_cast<std::uint32_t>(stacks_.size()), keep(std::span<const std::uint32_t>(frames_))};
}

StackTable::StackKey StackTable::key_of(const format::Sample& sample,
                                        std::span<const std::uint64_t> unwound) {
  // Kernel mappings change rarely, but then for all: their version is part of every chain's key.
  const std::uint64_t space = std::uint64_t{space_of(sample.pid)} << 32 | kernel_space_;
  const format::Bytes recorded = sample.callchain.bytes();
  if (unwound.empty()) return {chain_digest(recorded, seed_), space};
  const format::Bytes more = std::as_bytes(unwound);
  words_.assign(recorded.begin(), recorded.end());
  words_.insert(words_.end(), more.begin(), more.end());
  // Where the one ends and the other begins is part of it.
  return {chain_digest(words_, seed_ + recorded.size() + 1), space};
}

const Stack& StackTable::stack_of(const symbolize::AddressSpaces& spaces, const format::Sample& sample,
                                  std::span<const std::uint64_t> unwound, std::size_t max_frames) {
  const StackKey key = key_of(sample, unwound);
  const std::uint32_t number = by_chain_.find_or_make(
      mix(key.words.low, key.space), [&](std::uint32_t row) { return keys_[row] == key; },
      [&] {
        keys_.push_back(key);
        return stacks_.push_back(make_stack(spaces, sample, unwound, max_frames)).number;
      });
  return stacks_[number];
}

}  // namespace tacho::report
