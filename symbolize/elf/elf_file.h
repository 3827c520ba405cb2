// ElfFile: wraps libelf; symbols, segments, build id and debuglink of an ELF file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/address.h"
#include "format/records/build_id.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {

// The loadable segments of a file: converts offsets in the file to the addresses in its symbol table and
// DWARF, and back.
class LoadMap {
 public:
  struct Segment {
    std::uint64_t offset = 0, address = 0;
    std::uint64_t size = 0;       // bytes of memory; those past `file_size` (.bss) are not in the file
    std::uint64_t file_size = 0;  // bytes of the file
  };
  LoadMap() = default;
  explicit LoadMap(std::vector<Segment> segments) : segments_(std::move(segments)) {}

  // By a segment that has the offset in its file bytes; else by one whose .bss would have it, as perf does.
  std::optional<format::ElfAddress> address_of(format::FileOffset offset) const;
  std::optional<format::FileOffset> offset_of(format::ElfAddress address) const;

 private:
  std::vector<Segment> segments_;
};

// Labels (NOTYPE symbols without a size) of assembler sources that are symbols of the table.
// OutsideFunctions: those inside the range of a function are not, so that all addresses of the function have
// its name. All: as in perf.
enum class Labels : std::uint8_t { OutsideFunctions, All };

class ElfFile {
 public:
  // `file` is open for reading. The error does not name it.
  static Result<ElfFile> open(format::Fd file);
  // `image` must outlive the object.
  static Result<ElfFile> in_memory(format::Bytes image);
  ElfFile(ElfFile&&) noexcept;
  ElfFile& operator=(ElfFile&&) noexcept;
  ~ElfFile();

  // Empty when it has none.
  format::BuildId build_id() const;
  // The name in .gnu_debuglink; empty: there is none, or it is a path.
  std::string debuglink() const;
  // The CRC-32 of the linked file, from .gnu_debuglink; nothing without a link.
  std::optional<std::uint32_t> debuglink_checksum() const;
  bool has_full_symbols() const;     // .symtab
  bool has_dynamic_symbols() const;  // .dynsym
  bool has_lines() const;            // .debug_info or .debug_line, as they are or compressed
  LoadMap load_map() const;
  // For a kernel module, a relocatable file: where the kernel loads its sections, from the module's base.
  LoadMap module_load_map() const;
  // The bytes of .gnu_debugdata: an ELF file with only symbols, in xz. Empty: there is none.
  format::Bytes embedded_symbols() const;
  // Address of the first symbol of that name in .symtab.
  std::optional<format::ElfAddress> address_of(std::string_view symbol) const;

 private:
  friend Result<SymbolTable> read_symbols(const ElfFile&, const ElfFile&, Demangler*, Labels);
  struct State;
  explicit ElfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The error for a file with another build id than the wanted one.
Error wrong_build_id(const format::BuildId& seen);

// The symbols of `file`: .symtab, then .dynsym, and the PLT entries of `loaded`, named "foo@plt". `loaded` is
// the file that ran; it differs from `file` if that is a debug file, whose sections have no contents.
// Addresses are file offsets of `loaded`, as perf's are. Without a `demangler` mangled names are compared; it
// must outlive the table. Both files may be closed afterwards.
Result<SymbolTable> read_symbols(const ElfFile& file, const ElfFile& loaded, Demangler* demangler,
                                 Labels labels = Labels::OutsideFunctions);

}  // namespace tacho::symbolize
