// The three kinds of addresses, as types that do not mix: runtime addresses, file offsets, ELF addresses.
#pragma once

#include <compare>
#include <cstdint>

namespace tacho::format {

// An address in a running process or kernel, as in samples.
struct RuntimeAddress {
  std::uint64_t value = 0;
  auto operator<=>(const RuntimeAddress&) const = default;
};

// An offset into a mapped file: runtime address - start of the mapping + its page offset. perf prints
// these for user frames of a call chain ("map-relative").
struct FileOffset {
  std::uint64_t value = 0;
  auto operator<=>(const FileOffset&) const = default;
};

// A virtual address in an ELF file's symbol table and DWARF.
struct ElfAddress {
  std::uint64_t value = 0;
  auto operator<=>(const ElfAddress&) const = default;
};

// The end of [start, start + size), at most the highest address.
constexpr std::uint64_t end_of_range(std::uint64_t start, std::uint64_t size) {
  return start + (size < ~start ? size : ~start);
}

}  // namespace tacho::format
