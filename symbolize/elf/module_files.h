// Chooses the files of a module for symbols, source lines and instructions, and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/build_id.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/function_parameters.h"
#include "symbolize/elf/line_source.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/debuginfod.h"
#include "symbolize/frame.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/function_ranges.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {

// The reason for a missing vdso under --symfs.
inline constexpr const char* kVdsoNotAttached =
    "it is not attached to the capture: --symfs names another machine";

// The vdso of the running kernel, an ELF file. An error: it has another build id.
Result<std::vector<std::byte>> running_vdso(const format::BuildId& wanted);
// The same with any build id, for a capture of the running kernel.
Result<std::vector<std::byte>> running_vdso();

struct ModuleSymbols {
  SymbolTable table;
  std::optional<SymbolTable> embedded;  // of .gnu_debugdata: used if `table` has no symbol
  LoadMap loads;
  format::BuildId build_id;  // of the module's own file
  char letter = '!';         // of their source, as in perf report -v
  bool is_full = false;      // from a .symtab
  // Why .gnu_debugdata, which the file has, was not read; or why there are no symbols.
  std::optional<Error> missing_reason;
};

struct KernelSymbols {
  ModuleSymbols symbols;
  std::uint64_t moved = 0;  // KASLR offset: the recorded kernel's addresses minus those of the file, bytes
};

// Chooses the files of a module for symbols and source lines. A file is used only if it has the recorded
// build id.
class ModuleFiles {
 public:
  // `servers`: debuginfod servers; null: none. `demangler` may be null. Both must outlive this.
  ModuleFiles(DebugFiles files, Debuginfod* servers, Demangler* demangler,
              Labels labels = Labels::OutsideFunctions)
      : files_(std::move(files)), servers_(servers), demangler_(demangler), labels_(labels) {}

  // As in perf: names come from a debug file if one matches, file offsets from the file that ran. The error
  // names the files that were tried. If the file that ran has no symbols, `missing_reason` is set.
  Result<ModuleSymbols> symbols(const Module& module) const;
  // Of a kernel module: addresses are offsets from its base.
  Result<ModuleSymbols> kernel_module_symbols(const Module& module) const;
  // The functions in .eh_frame of the file that ran, as offsets in the file; null: it has no .eh_frame.
  std::unique_ptr<FunctionRanges> function_ranges(const Module& module) const;
  // The file that ran.
  Result<format::Fd> file(const Module& module) const;
  // Of its DWARF, or else of its Go tables. Null: no file of the module has source lines. An error: they
  // cannot be read.
  Result<std::unique_ptr<LineSource>> lines(const Module& module) const;

  // Parameters of the module's functions, and its segments; nullopt: no file has DWARF; errors as of lines().
  struct Parameters {
    FunctionParameters functions;
    LoadMap loads;
  };
  Result<std::optional<Parameters>> parameters(const Module& module) const;

  // From the vmlinux of -k. The symbol `reference` was at `reference_address` in the recorded kernel.
  Result<KernelSymbols> kernel_symbols(const std::string& path, const format::BuildId& id,
                                       const std::string& reference, std::uint64_t reference_address) const;
  Result<std::unique_ptr<LineSource>> kernel_lines(const std::string& path, const format::BuildId& id) const;

 private:
  struct Opened {
    format::Fd file;  // the same file once more, for libdw
    ElfFile elf;
    Candidate candidate;  // by which it was found
  };

  Result<Opened> open_checked(Result<format::Fd> file, const Candidate& candidate, const std::string& name,
                              const format::BuildId& wanted) const;
  Result<Opened> open_candidate(const Candidate& candidate, const format::BuildId& wanted) const;
  Result<Opened> fetch(const format::BuildId& id, bool is_debug) const;
  Result<Opened> own(const Module& module) const;
  std::optional<Opened> debug_file(const Module& module, const Result<Opened>& own,
                                   bool (ElfFile::*has)() const) const;
  Result<ModuleSymbols> read_module(const Opened& file, const ElfFile& loaded, char letter) const;
  Result<std::optional<SymbolTable>> embedded(const ElfFile& file) const;
  Result<std::unique_ptr<LineSource>> read_lines(Opened file) const;
  // Gives `reader` its DWARF supplementary file (.gnu_debugaltlink), if that is found.
  template <class Reader>
  void find_supplementary_file(const Candidate& from, Reader& reader) const;

  DebugFiles files_;
  Debuginfod* servers_;
  Demangler* demangler_;
  Labels labels_;
};

// The instructions of a module, from its file.
class ModuleCode {
 public:
  // `features`: of the capture, which may have copies of files. May be null; must outlive this.
  explicit ModuleCode(DebugFiles files, const format::Features* features = nullptr)
      : files_(std::move(files)), features_(features) {}

  // At most `size` bytes at `offset` of the file, fewer at its end. Empty: there is no file, or it has
  // another build id. Valid as long as this object.
  format::Bytes read_code(const Module& module, std::uint64_t offset, std::size_t size);
  // The same of the vmlinux of -k, whose build id the symbolizer has checked.
  format::Bytes read_vmlinux(const std::string& path, std::uint64_t offset, std::size_t size);
  bool is_64_bit(const Module& module) { return file_of(module).is_64_bit; }

 private:
  struct File {
    std::vector<std::byte> bytes;
    bool is_64_bit = false;
  };
  const File& file_of(const Module& module);

  DebugFiles files_;
  const format::Features* features_;
  std::unordered_map<const Module*, File> by_module_;
  std::deque<std::vector<std::byte>> kernel_code_;
};

}  // namespace tacho::symbolize
