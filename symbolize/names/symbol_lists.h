// Parsers of symbol lists: /proc/kallsyms, /tmp/perf-PID.map, and simpleperf's feature 128.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {

// A kernel symbol with its address while recording: with it, kallsyms of another boot is relocated.
struct ReferenceSymbol {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t text_end = 0;    // end of the kernel's code; 0: unknown
  bool is_of_same_boot = false;  // the text was read while recording
};

// Parser of /proc/kallsyms:
//   ffffffff81000000 T _text
//   ffffffffc0201000 t ext4_readdir<TAB>[ext4]
// Kernel and modules become tables in the addresses of the recording.
class Kallsyms {
 public:
  // An error: no line has an address (it was read without the right to
  // see addresses), there is no reference symbol, or the size of the kernel's code is not the recorded one.
  // If the list is of another boot, it has no symbols of modules, whose addresses differ.
  static Result<Kallsyms> parse(std::vector<std::byte> text, const std::optional<ReferenceSymbol>& reference);
  // The same for a text that is read piece by piece: `next` returns the pieces, and an empty one at the end.
  using Pieces = std::function<Result<std::vector<std::byte>>()>;
  static Result<Kallsyms> parse(const Pieces& next, const std::optional<ReferenceSymbol>& reference);

  SymbolTable& kernel() { return kernel_; }
  // `name`: "[ext4]"; null: no symbols of that module.
  SymbolTable* module(std::string_view name);
  // The addresses of a module's first functions, ascending.
  std::span<const std::uint64_t> module_functions(std::string_view name) const;

 private:
  struct Lines;
  static Result<Kallsyms> of_lines(Lines lines, const std::optional<ReferenceSymbol>& reference);

  std::vector<std::byte> names_;  // to which the tables point
  SymbolTable kernel_;
  std::unordered_map<std::string_view, SymbolTable> modules_;
  std::unordered_map<std::string_view, std::vector<std::uint64_t>> module_functions_;
};

// Parses /tmp/perf-PID.map, the symbols that a JIT compiler writes for its code, one line each:
//   START SIZE name, blanks allowed      (hexadecimal)
// Addresses are runtime addresses. Other lines are skipped; an error if there is no such line.
Result<SymbolTable> parse_perf_map(std::vector<std::byte> text);

inline constexpr std::uint32_t kSimpleperfFeature = 128;

// Parser of the symbols that simpleperf stores in its captures (header feature 128, "file"). They were read
// on the recorded device, from the files that ran.
//
//   for each file: u32 size of the rest, path, NUL, u32 type, u64 address of its code,
//                  u32 number of symbols, each: u64 address, u32 length, name, NUL;
//                  DEX file: u32 number of offsets, each: u64
//                  ELF file: u64 offset of its code (missing in old captures)
class SimpleperfSymbols {
 public:
  // Lists the files; `section` must outlive this. The files after damage are ignored.
  explicit SimpleperfSymbols(format::Bytes section);

  // The symbols of a program or library, by file offset, or of the kernel, by address. One table for each
  // path, whatever its build id; valid as long as this. Null: there are none, or their offsets are unknown.
  SymbolTable* table_of(std::string_view path);

 private:
  struct File {
    format::Bytes symbols;
    std::uint32_t count = 0;
    std::uint64_t moved = 0;  // address of a symbol minus its offset in the file
    bool was_read = false;    // `table` is set
    SymbolTable table;
  };
  static SymbolTable read_table(const File& file);
  void add_file(format::Cursor in);

  std::map<std::string, File, std::less<>> files_;
};

}  // namespace tacho::symbolize
