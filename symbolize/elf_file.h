// libelf behind a small class: what an ELF file says about its symbols and itself.
#pragma once

#include <memory>
#include <string>

#include "format/build_id.h"
#include "format/cursor.h"
#include "format/file.h"
#include "format/result.h"
#include "symbolize/demangle.h"
#include "symbolize/symbol_table.h"

namespace tacho::symbolize {

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
  bool has_full_symbols() const;     // .symtab
  bool has_dynamic_symbols() const;  // .dynsym

 private:
  friend Result<SymbolTable> read_symbols(const ElfFile&, const ElfFile&, Demangler*);
  struct State;
  explicit ElfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The symbols of `file`: .symtab, then .dynsym, and the PLT entries of `loaded`, named "foo@plt". `loaded` is
// the file that ran; it is another one than `file` when the symbols were split off into a debug file, whose
// sections have lost their places. Addresses are file offsets of `loaded`, as perf has them. Without a
// `demangler` names are compared and combined as they are. The table stands alone: both files may be closed.
Result<SymbolTable> read_symbols(const ElfFile& file, const ElfFile& loaded, Demangler* demangler);

}  // namespace tacho::symbolize
