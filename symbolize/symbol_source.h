// Symbol sources: tables of symbols and source lines for the addresses of a module. The classes are one idea:
// a source, by module once it is open, and the symbols that simpleperf stored in the capture.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/build_id.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/line_source.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/symbol_lists.h"
#include "symbolize/names/symbol_table.h"
#include "symbolize/packed_names.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {

// Why names or lines of a module are missing.
struct MissingReason {
  std::string text;                // the end of the message; empty: nothing is missing
  std::string_view message_start;  // the beginning of the message: what is missing
  bool is_of_own_file = false;     // the message begins with the name of the module's own file
  bool is_left_out = false;        // the symbols exceed the limits for the file's size
};

// The symbol table, source lines and other tables of one module.
struct SymbolSource {
  // Where the symbols are from. File: the module's own file or its debug file. KernelModuleFile: a .ko file,
  // whose addresses in `loads` are relative to the module's base. Simpleperf: its section of the capture.
  enum class Origin : std::uint8_t { Other, File, Vmlinux, KernelModuleFile, Simpleperf };
  std::unique_ptr<SymbolTable> own;       // null: none, which is frequent in captures with deleted files
  SymbolTable* table = nullptr;           // `own`, or a table shared with other modules; null: no names
  std::unique_ptr<SymbolTable> embedded;  // of .gnu_debugdata: used if `own` has no symbol
  LoadMap loads;
  std::uint64_t moved = 0;  // of a vmlinux: address in the running kernel minus address in the file
  Origin origin = Origin::Other;
  char letter = '!';
  bool is_mangled = false;
  bool has_full_symbols = false;
  bool has_own_table = false;  // its symbols are not from kallsyms
  format::BuildId build_id;    // of the file that was read; empty: it has none
  bool is_guess = false;       // of a perf map that may be another process's
  MissingReason missing;
  const JitCode::Function* jit = nullptr;
  PackedSource* packed = nullptr;  // set if all is from the capture's symbol pack

  std::unique_ptr<LineSource> lines;  // read when the first address needs them

  bool is_vmlinux() const { return origin == Origin::Vmlinux; }
  bool is_kernel_module() const { return origin == Origin::KernelModuleFile; }
  // Sets `table`, if it is not shared.
  void use_own_table() {
    if (!table) table = own ? own.get() : embedded.get();
  }
  // The file offset (by which symbols are looked up) and the ELF address of the frame's code.
  std::uint64_t offset_of(const Frame& frame) const;
  std::uint64_t elf_address_of(const Frame& frame, std::uint64_t offset) const;
};

// The opened symbol sources, by module. Modules without names share a source for each reason, since a capture
// may name any number of deleted files.
class SymbolSources {
 public:
  // The source of a module.
  struct Entry {
    SymbolSource* source = nullptr;  // null: not opened yet
    bool is_shared = false;
    bool lines_were_read = false;
    bool was_unsure = false;     // the build id was unknown when it was opened (a pipe may bring it later)
    bool is_wrong_file = false;  // the build id that came later is not that of the file
    std::string file_id;         // "build id ..." of the file
  };
  // Valid as long as this.
  Entry& entry_of(const Module& module) {
    return known_.try_emplace(&module, Entry{.was_unsure = module.is_unsure()}).first->second;
  }
  // Null: it was not opened.
  const SymbolSource* find_source(const Module& module) const;
  void keep(SymbolSource source, Entry& known);
  // Makes the source unshared, to change it.
  SymbolSource& own(Entry& known);
  // Compares the file's build id with the recorded one, if a pipe brought that after the file was opened.
  // True: `known` is of the wrong file. Only the first call compares.
  static bool check_late_build_id(Entry& known, const Module& module);
  // Reports the modules whose names are a guess, and those whose names are another file's.
  void report_guesses(const std::deque<const Module*>& modules, format::Diagnostics& diagnostics);

 private:
  void report_wrong_files(const std::deque<const Module*>& modules, format::Diagnostics& diagnostics);

  std::deque<SymbolSource> all_;
  std::unordered_map<std::string, SymbolSource*> shared_;  // by their MissingReason
  std::unordered_map<const Module*, Entry> known_;
};

// `letter`: perf's, for the symbol source.
SymbolSource from_table(SymbolTable table, char letter, bool is_mangled);
SymbolSource from_file(ModuleSymbols symbols);
// `function` must outlive the source.
SymbolSource from_jit(const JitCode::Function& function);
// `packed` must outlive the source.
SymbolSource from_pack(PackedSource& packed, Unnamed unnamed);
SymbolSource from_vdso(std::vector<std::byte> image, Demangler* demangler);
SymbolSource without_names(Error reason);

// The symbols that simpleperf stores in a capture (feature section 128), also of the vdso; read when first
// needed.
class SimpleperfNames {
 public:
  // Must outlive this.
  explicit SimpleperfNames(const format::Features& features) : features_(features) {}
  // Nothing: no symbols of this module. Sources of one path share a table, which lives as long as this.
  std::optional<SymbolSource> source_of(const Module& module);

 private:
  const format::Features& features_;
  std::optional<SimpleperfSymbols> symbols_;
};

// Whether the error is EFBIG: the symbols exceed the limits for the file's size.
bool is_left_out(const Error& reason);

struct MissingMessage {
  format::Damage kind = format::Damage::NoSymbols;  // or Note, if no names are missing
  std::string line;
};
// One message about all that is missing for the module at `path`; empty: nothing is. `source` may be null.
// `ended`: why call chains end in it; empty: none does.
MissingMessage missing_message(const SymbolSource* source, const DebugFiles& files, const std::string& path,
                               std::string_view ended);

}  // namespace tacho::symbolize
