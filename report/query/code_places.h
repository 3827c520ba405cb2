// Translates ELF addresses, as operands of instructions have them, to shown addresses, which have names.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "symbolize/packed_names.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

class CodePlaces {
 public:
  // `facts`: of a place of the same module. `elf_address` counts as the file does. Nothing: no name can be
  // known for it.
  std::optional<std::uint64_t> shown_address(const symbolize::PlaceFacts& facts, std::uint64_t elf_address);

 private:
  // Of packed addresses with symbols: shown ones by those of their file.
  using ByFile = std::unordered_map<std::uint64_t, std::uint64_t>;
  std::unordered_map<const symbolize::PackedSource*, ByFile> packed_;
};

}  // namespace tacho::report
