// Parser of the symbols that simpleperf stores in its captures (header feature 128, "file"). They were read
// on the recorded device, from the files that ran.
//
//   for each file: u32 size of what follows, path, NUL, u32 type, u64 address of its code,
//                  u32 symbols, each: u64 address, u32 length, name, NUL;
//                  of a DEX file u32 offsets, u64 each; of an ELF file u64 offset of its code, in newer ones
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {

inline constexpr std::uint32_t kCarriedSymbolsFeature = 128;

class CarriedSymbols {
 public:
  // Reads which files there are; `section` must outlive this. What stands behind damage is left out.
  explicit CarriedSymbols(format::Bytes section);

  // The names of a program or library by places in its file, or of the kernel by addresses; as long as this,
  // and one table for each path, however many builds the capture says had it. Null: there are none of it, or
  // none that can be placed in it.
  SymbolTable* of(std::string_view path);

 private:
  struct File {
    format::Bytes symbols;
    std::uint32_t count = 0;
    std::uint64_t moved = 0;  // address of a symbol minus its place
    bool was_read = false;    // into `table`
    SymbolTable table;
  };
  static SymbolTable read(const File& file);
  void add(format::Cursor in);

  std::map<std::string, File, std::less<>> files_;
};

}  // namespace tacho::symbolize
