// Symbol packs: functions, inlined calls, files and lines of the addresses in a capture's samples, by module.
// Stored in feature section SYMBOL_PACK (docs/capture-format.md).
//
// Names, files and reasons are numbers of texts, which are stored once; text 0 is empty. Addresses are as
// perf shows them: file offsets in user modules, runtime addresses in the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/records/build_id.h"

namespace tacho::format {

enum class PackLevel : std::uint8_t {
  Names = 1,    // functions
  Inlines = 2,  // and inlined calls, files and lines
  Code = 3,     // and instructions
};

struct PackedSymbol {
  std::uint64_t start = 0, end = 0;
  std::uint32_t name = 0;  // the linker's
  bool is_data = false;
};

// An instance of a function: its own code, or an inlined call.
struct PackedFunction {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t name = 0;
  bool is_linkage_name = false;  // the name is the linker's (mangled)
  std::uint64_t start = 0;       // an ELF address
  std::uint32_t caller = kNone;  // of an inlined call: number of the function around it, which is lower
  std::uint32_t call_file = 0, call_line = 0;
};

struct PackedAddress {
  std::uint64_t address = 0;
  std::uint64_t elf_address = 0;  // the address in the module's DWARF
  std::uint32_t symbol = PackedFunction::kNone;
  std::uint32_t function = PackedFunction::kNone;  // the innermost
  std::uint32_t file = 0, line = 0;                // both 0: unknown
};

// A piece of a module's code; its bytes are in the module's `code_bytes`, in the order of pieces.
struct PackedPiece {
  std::uint64_t start = 0;
  std::uint32_t size = 0;    // bytes
  std::uint64_t offset = 0;  // in `code_bytes`; ignored by the writer
};

struct PackedModule {
  // Bits of `flags`.
  static constexpr std::uint8_t kHasNames = 1;  // a symbol source was read
  static constexpr std::uint8_t kIsMangled = 2;
  static constexpr std::uint8_t kHasFullSymbols = 4;       // from .symtab, not only .dynsym
  static constexpr std::uint8_t kHasOwnTable = 8;          // its symbols are not from kallsyms
  static constexpr std::uint8_t kHasLines = 16;            // DWARF was read
  static constexpr std::uint8_t kIsVmlinux = 32;           // symbols are from a vmlinux
  static constexpr std::uint8_t kIsKernelModuleFile = 64;  // symbols are from a .ko file
  static constexpr std::uint8_t kHasCode = 128;

  std::uint8_t kind = 0;  // docs/capture-format.md lists them
  std::uint8_t flags = 0;
  std::uint8_t letter = '!';  // perf's, for the symbol source
  std::uint32_t path = 0;
  BuildId build_id;
  std::uint32_t missing_reason = 0;  // why names are missing
  std::vector<PackedSymbol> symbols;
  std::vector<PackedFunction> functions;
  std::vector<PackedAddress> addresses;  // ascending, each once
  bool is_64_bit = false;                // this and the next two: with kHasCode
  std::vector<PackedPiece> code;         // ascending; they may overlap
  std::vector<std::byte> code_bytes;
};

// Texts, each with a number.
class PackTexts {
 public:
  PackTexts() { texts_.emplace_back(); }
  PackTexts(PackTexts&&) = default;
  PackTexts& operator=(PackTexts&&) = default;
  // Equal texts have equal numbers.
  std::uint32_t number_of(std::string_view text);
  // Adds a text that number_of() will not find.
  void append(std::string_view text) { texts_.emplace_back(text); }
  // Empty: unknown number.
  std::string_view operator[](std::uint32_t number) const {
    return number < texts_.size() ? std::string_view(texts_[number]) : std::string_view();
  }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t, SeededTextHash> numbers_;
};

struct SymbolPack {
  PackLevel level = PackLevel::Inlines;
  PackTexts texts;
  std::vector<PackedModule> modules;
};

// The section's bytes. Symbols and addresses may be in any order, with duplicate addresses; they are sorted.
Result<std::vector<std::byte>> write_symbol_pack_section(SymbolPack& pack);
// Checks only the header of the section.
Result<> check_symbol_pack(Bytes section);
// An error: it would take too much memory for its size, or refers to missing items.
Result<SymbolPack> parse_symbol_pack(Bytes section);

}  // namespace tacho::format
