// Symbol sources: what can name the addresses of a module, in perf's order; and packs of other captures.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/extensions/map_owner.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/build_id.h"
#include "symbolize/elf/dwarf_lines.h"
#include "symbolize/elf/elf_file.h"
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

// Symbol sources: the symbol table, source lines and other tables of one module.

// Opened when the first address needs it.
struct SymbolSource {
  std::unique_ptr<SymbolTable> own;  // null: it has none, as many have in a capture that names what is gone
  SymbolTable* table = nullptr;  // where names are looked up: `own`, or one that others share; null: no names
  std::unique_ptr<SymbolTable> embedded;  // of .gnu_debugdata: looked up where `own` has no symbol
  LoadMap loads;
  std::uint64_t moved = 0;  // of a vmlinux: address in the running kernel minus address in the file
  bool is_vmlinux = false;
  bool is_kernel_module = false;  // read from its .ko file: `loads` counts from the module's base
  char letter = '!';
  bool is_mangled = false;
  bool has_full_symbols = false;
  bool has_own_table = false;   // its names are no part of kallsyms
  format::BuildId build_id;     // of the file that was read for them; empty: it has none
  std::string lack;             // why names or lines are missing: the end of the message
  bool lacks_its_file = false;  // the reason is about the module's own file, whose name would stand before it
  bool is_of_file = false;      // the module's own file was read for them, whether it has any
  bool is_carried = false;      // its names were recorded, whatever file there is now
  bool is_guess = false;        // of a perf map that the process may not have made
  bool is_left_out = false;     // they would take more memory or time than the file is worth
  std::string_view lacking;     // which of them are missing: the beginning of the message
  const JitCode::Function* jit = nullptr;
  PackedSource* packed = nullptr;  // all of it comes from the capture's symbol pack

  std::optional<DwarfLines> lines;  // read when the first address needs them

  // Where the frame's code is in this module's file, as an offset and as an ELF address. Symbols are looked
  // up by the offset.
  std::uint64_t offset_of(const Frame& frame) const;
  std::uint64_t elf_address_of(const Frame& frame, std::uint64_t offset) const;
};

// The opened symbol sources, by module. Modules without names share a source for each reason, since a capture
// may name any number of deleted files.
class SymbolSources {
 public:
  struct Known {
    SymbolSource* source = nullptr;  // null: not opened yet
    bool is_shared = false;
    bool lines_were_read = false;
    bool was_unsure = false;  // when it was opened: of a pipe build ids may come later
    bool is_another = false;  // and then it turned out that its names were another file's
    std::string other_id;     // which one that was
  };
  // As long as this.
  Known& of(const Module& module) {
    return known_.try_emplace(&module, Known{.was_unsure = module.is_unsure()}).first->second;
  }
  // Null when it was never opened.
  const SymbolSource* find(const Module& module) const;
  void keep(SymbolSource source, Known& known);
  // A source that no other module has, to be changed.
  SymbolSource& own(Known& known);
  // Whether the opened source `known` is of the wrong file, by a build id that a pipe brought later. Call it
  // once.
  static bool is_another_by_now(Known& known, const Module& module);
  // Of which of these modules the names are a guess, and of which they were another file's.
  void tell_guesses(const std::deque<const Module*>& modules, format::Diagnostics& diagnostics);

 private:
  void tell_others(const std::deque<const Module*>& modules, format::Diagnostics& diagnostics);

  std::deque<SymbolSource> all_;
  std::unordered_map<std::string, SymbolSource*> shared_;  // by their lack
  std::unordered_map<const Module*, Known> known_;
};

// `letter` is perf's, for where the names came from.
SymbolSource from_table(SymbolTable table, char letter, bool is_mangled);
SymbolSource from_file(ModuleSymbols symbols);
// `function` must outlive the source.
SymbolSource from_jit(const JitCode::Function& function);
// `packed` must outlive the source.
SymbolSource from_pack(PackedSource& packed, Unnamed unnamed);
struct MapText {
  std::vector<std::byte> bytes;
  format::MapTrust trust = format::MapTrust::Its;
};
// The perf map at /tmp/perf-PID.map, which is `module`'s path, if it is of the
// recorded process.
Result<MapText> read_map_of(const DebugFiles& files, const format::Features& features, const Module& module);
SymbolSource from_vdso(std::vector<std::byte> image, Demangler* demangler);
SymbolSource without_names(Error reason);

// What simpleperf put into a capture, the vdso's names too, read when the first module asks for it.
class CarriedNames {
 public:
  // Must outlive this.
  explicit CarriedNames(const format::Features& features) : features_(features) {}
  // Nothing: there are none of it. SymbolSources of one path share their table, which lives as long as this.
  std::optional<SymbolSource> source_of(const Module& module);

 private:
  const format::Features& features_;
  std::optional<CarriedSymbols> symbols_;
};

// Whether the error is EFBIG: the file's symbols would take more memory or time than its size justifies.
bool is_left_out(const Error& reason);

struct Lack {
  format::Damage kind = format::Damage::NoSymbols;  // a note where names are not what is missing
  std::string line;
};
// One message for everything that the module at `path` lacks; empty: nothing. `source` may be null. `ended`:
// why unwound call chains end in it; empty when none does.
Lack lack_of(const SymbolSource* source, const DebugFiles& files, const std::string& path,
             std::string_view ended);

// Uses the symbol packs of other captures for programs and libraries with equal build ids.
//
// The kernel and its modules are left out: they are packed by addresses of one boot, and each capture has its
// own pack of them. Only addresses that the other capture hit have names, because a pack does not know where
// functions end.

class OtherPacks {
 public:
  // The section of a capture that is called `name` in messages. All must be added before one is asked for. Of
  // an address that several have, the first one's names stay.
  Result<> add(const std::string& name, format::Bytes section);
  // What was left out, and why: a line for each section of which something was.
  const std::vector<std::string>& omissions() const { return omissions_; }
  // Null: nothing of it was packed. As long as this.
  PackedSource* find(const Module& module);
  // What others have of the module's path under another build id: "; other.data has the names of build id
  // 0123...".
  std::string other_build_of(const Module& module) const;

 private:
  struct Merged {
    format::PackedModule module;
    std::optional<PackedSource> source;
  };
  // False: the names have another form than the present ones, and are left out.
  bool merge(Merged& to, const format::PackedModule& from, const format::PackTexts& texts);

  format::PackTexts texts_;
  std::map<std::pair<ModuleKind, format::BuildId>, Merged> modules_;
  std::vector<std::string> omissions_;
  std::map<std::string, std::string, std::less<>> by_path_;  // what stands in messages
};

}  // namespace tacho::symbolize
