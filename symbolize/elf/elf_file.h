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

// The loaded segments of a file: from offsets in the file to the addresses of its symbol table and
// DWARF, and back.
class LoadMap {
 public:
  struct Segment {
    std::uint64_t offset = 0, address = 0;
    std::uint64_t size = 0;  // bytes of memory; those past `file_size` (.bss) are at no place in the file
    std::uint64_t file_size = 0;  // bytes of the file
  };
  LoadMap() = default;
  explicit LoadMap(std::vector<Segment> segments) : segments_(std::move(segments)) {}

  // Of segments that claim the offset, one that has the file's byte there; else .bss, as perf counts it on.
  std::optional<format::ElfAddress> address_of(format::FileOffset offset) const;
  std::optional<format::FileOffset> offset_of(format::ElfAddress address) const;

 private:
  std::vector<Segment> segments_;
};

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
  // The name in .gnu_debuglink; empty when there is none, or when it is not a plain name.
  std::string debuglink() const;
  // The CRC-32 that the linked file has; nothing without a link.
  std::optional<std::uint32_t> debuglink_checksum() const;
  bool has_full_symbols() const;     // .symtab
  bool has_dynamic_symbols() const;  // .dynsym
  bool has_lines() const;            // .debug_info or .debug_line, as they are or compressed
  LoadMap load_map() const;
  // Of a kernel module, which was not linked: where the kernel puts its code, counted from the module's base.
  LoadMap module_load_map() const;
  // The bytes of .gnu_debugdata: an ELF file of symbols alone, under xz. Empty when there is none.
  format::Bytes embedded_symbols() const;
  // Where .symtab has the first symbol of that name.
  std::optional<format::ElfAddress> address_of(std::string_view symbol) const;

 private:
  friend Result<SymbolTable> read_symbols(const ElfFile&, const ElfFile&, Demangler*);
  struct State;
  explicit ElfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The symbols of `file`: .symtab, then .dynsym, and the PLT entries of `loaded`, named "foo@plt". `loaded` is
// the file that ran; it is another one than `file` when the symbols were split off into a debug file, whose
// sections have lost their places. Addresses are file offsets of `loaded`, as perf has them. Without a
// `demangler` names are compared and combined as they are; it must outlive the table. Both files may be
// closed.
Result<SymbolTable> read_symbols(const ElfFile& file, const ElfFile& loaded, Demangler* demangler);

}  // namespace tacho::symbolize
