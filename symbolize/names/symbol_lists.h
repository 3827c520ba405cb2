// Parsers of symbol lists that are no ELF files: /proc/kallsyms, /tmp/perf-PID.map, and simpleperf's feature
// 128.
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

// Parser of /proc/kallsyms:
//   ffffffff81000000 T _text
//   ffffffffc0201000 t ext4_readdir<TAB>[ext4]
// Kernel and modules become tables in the addresses of the recording.

// A kernel symbol and its address while recording: shows how far the text of another boot has to be
// moved.
struct ReferenceSymbol {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t text_end = 0;    // where its code ended; 0: not known
  bool is_of_same_boot = false;  // the text cannot be of another boot: it was read while recording
};

class Kallsyms {
 public:
  // `text` is kept; the names point into it. An error when no line of it gives a kernel address, as when it
  // was read without the permission to see addresses, or when it lacks the reference symbol,
  // or when its kernel's code is not as long as the recorded one's. Of another boot it names no modules, as
  // these lay elsewhere then.
  static Result<Kallsyms> parse(std::vector<std::byte> text, const std::optional<ReferenceSymbol>& reference);
  // The same of a text that is still being read: `next` gives the pieces of it, and an empty one at the end.
  // Its lines are taken apart as they come.
  using Pieces = std::function<Result<std::vector<std::byte>>()>;
  static Result<Kallsyms> parse(const Pieces& next, const std::optional<ReferenceSymbol>& reference);

  SymbolTable& kernel() { return kernel_; }
  // `name` as in "[ext4]"; null when the text has no symbol of it.
  SymbolTable* module(std::string_view name);
  // The addresses of a module's first functions, ascending, if it has any.
  std::span<const std::uint64_t> module_functions(std::string_view name) const;

 private:
  struct Lines;
  static Result<Kallsyms> of_lines(std::vector<std::byte> text, Lines lines,
                                   const std::optional<ReferenceSymbol>& reference);

  std::vector<std::byte> text_;
  SymbolTable kernel_;
  std::unordered_map<std::string_view, SymbolTable> modules_;
  std::unordered_map<std::string_view, std::vector<std::uint64_t>> module_functions_;
};

// Parser of /tmp/perf-PID.map, the symbols that a JIT compiler writes for its code, one line each:
//   START SIZE name, blanks allowed      (hexadecimal)

// Addresses are runtime addresses. Lines of another form are skipped; an error when not one has the form.
Result<SymbolTable> parse_perf_map(std::vector<std::byte> text);

// Parser of the symbols that simpleperf stores in its captures (header feature 128, "file"). They were read
// on the recorded device, from the files that ran.
//
//   for each file: u32 size of what follows, path, NUL, u32 type, u64 address of its code,
//                  u32 symbols, each: u64 address, u32 length, name, NUL;
//                  of a DEX file u32 offsets, u64 each; of an ELF file u64 offset of its code, in newer ones

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
