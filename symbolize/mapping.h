// A mapping: a range of a process's or the kernel's addresses.
#pragma once

#include <cstdint>

#include "format/records/address.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

// Lives as long as the AddressSpaces it came from, also after it was unmapped, and its address (the pointer)
// is its identity: one lookup result can be kept per (mapping, ip).
struct Mapping {
  const Module* module = nullptr;
  std::uint64_t start = 0, end = 0;  // runtime addresses, end is past the last
  std::uint64_t page_offset = 0;     // bytes into the file
  std::uint32_t protection = 0;      // PROT_*
  std::uint32_t pid = 0;             // whose it is (JIT maps are named by it); -1 the kernel
  bool is_identity = false;          // kernel, BPF: shown addresses are runtime addresses

  // perf's "map-relative" address: what it prints, and what file offsets are.
  std::uint64_t shown_address(format::RuntimeAddress ip) const {
    return is_identity ? ip.value : ip.value - start + page_offset;
  }
  // What a report shows of an address without a name: code of a kernel module counts from where it was
  // loaded.
  std::uint64_t nameless_address(format::RuntimeAddress ip) const {
    const bool is_module = module->kind == ModuleKind::KernelModule;
    return is_module ? ip.value - start + page_offset : shown_address(ip);
  }
};

// A range of a process's addresses, first and last, inside one mapping or between two.
struct AddressRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  const Mapping* mapping = nullptr;
};

}  // namespace tacho::symbolize
