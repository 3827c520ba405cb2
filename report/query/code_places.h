// Translates the ELF addresses in instruction operands to the addresses that views show and resolve.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "symbolize/packed_names.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

class CodePlaces {
 public:
  // `facts` belong to any address of the same module; `elf_address` is an address in its ELF file. nullopt
  // when no name can be known for it.
  std::optional<std::uint64_t> shown_address(const symbolize::PlaceFacts& facts, std::uint64_t elf_address);

 private:
  // Packed addresses that have symbols: the shown address by the ELF address.
  using ByFile = std::unordered_map<std::uint64_t, std::uint64_t>;
  std::unordered_map<const symbolize::PackedSource*, ByFile> packed_;
};

}  // namespace tacho::report
