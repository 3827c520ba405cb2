// What the addresses that a capture hit are called, by module: function, inlined calls, file and line. It
// travels in the capture as header section SYMBOL_PACK (docs/capture-format.md).
//
// Names, files and reasons are numbers of texts, each kept once; text 0 is empty. Addresses count as perf
// shows them: from the start of the module's file, and in the kernel as they were.
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
  std::uint32_t name = 0;  // as the linker knows it
  bool is_data = false;
};

// A function where it has code: its own, or that of a call that was inlined.
struct PackedFunction {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t name = 0;
  bool is_linkers = false;       // the name is the linker's, and not only the language's
  std::uint64_t start = 0;       // an ELF address
  std::uint32_t caller = kNone;  // the number of the function that it was inlined into: a lower one
  std::uint32_t call_file = 0, call_line = 0;
};

struct PackedAddress {
  std::uint64_t address = 0;
  std::uint64_t elf_address = 0;  // as the module's DWARF counts
  std::uint32_t symbol = PackedFunction::kNone;
  std::uint32_t function = PackedFunction::kNone;  // the innermost
  std::uint32_t file = 0, line = 0;                // both 0 where nothing is known
};

// A piece of a module's code, in the module's `code_bytes`: behind those of the pieces before.
struct PackedPiece {
  std::uint64_t start = 0;
  std::uint32_t size = 0;    // bytes
  std::uint64_t offset = 0;  // of its first one in `code_bytes`; what a writer is given does not count
};

struct PackedModule {
  // What `flags` holds.
  static constexpr std::uint8_t kHasNames = 1;  // some source of names was read
  static constexpr std::uint8_t kIsMangled = 2;
  static constexpr std::uint8_t kHasFullSymbols = 4;       // .symtab, and not only .dynsym
  static constexpr std::uint8_t kHasOwnTable = 8;          // its names are no part of kallsyms
  static constexpr std::uint8_t kHasLines = 16;            // DWARF was read
  static constexpr std::uint8_t kIsVmlinux = 32;           // names come from the kernel's file
  static constexpr std::uint8_t kIsKernelModuleFile = 64;  // or from a kernel module's
  static constexpr std::uint8_t kHasCode = 128;

  std::uint8_t kind = 0;  // docs/capture-format.md lists them
  std::uint8_t flags = 0;
  std::uint8_t letter = '!';  // perf's, for where names came from
  std::uint32_t path = 0;
  BuildId build_id;
  std::uint32_t lack = 0;  // why names are missing
  std::vector<PackedSymbol> symbols;
  std::vector<PackedFunction> functions;
  std::vector<PackedAddress> addresses;  // ascending, each once
  bool is_64_bit = false;                // with kHasCode, as the next two
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
  // One that is not looked for: number_of() does not find it.
  void append(std::string_view text) { texts_.emplace_back(text); }
  // Empty for a number that none has.
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

// The section's body. Symbols and addresses may come in any order, an address twice; they are put in order.
Result<std::vector<std::byte>> write_symbol_pack_section(SymbolPack& pack);
// Checks the fixed part of a section's body alone.
Result<> check_symbol_pack(Bytes section);
// Refuses sections that would take far more memory than their size is worth, and numbers that name nothing.
Result<SymbolPack> parse_symbol_pack(Bytes section);

}  // namespace tacho::format
