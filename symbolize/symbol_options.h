// Options about symbol sources and how names are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/inline_calls.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

enum class Demangle : std::uint8_t { Yes, No, Whole };  // Whole: with parameters
// Which stacks get frames for inlined calls. Unwound: those of --call-graph dwarf, as in perf.
enum class Inlines : std::uint8_t { No, Unwound, All };
enum class SourceLines : std::uint8_t { No, Yes };
// Which truncated stacks (longer than their copy) get a last frame at address -1. AsPerf6: those in which
// perf 6.1 has it, since it reads zeros after the copy (x86-64 only). All: each. None: as in perf 7.
enum class CutMark : std::uint8_t { AsPerf6, All, None };
// The address at which a caller is looked up. ByCall: the return address minus one, in the call instruction.
// ByReturnAddress: as perf, after the call, where another function may begin.
enum class Callers : std::uint8_t { ByCall, ByReturnAddress };
// The name of code without a symbol: the range (FDE) in .eh_frame around it, or, as in perf, its address.
enum class Unnamed : std::uint8_t { Functions, Addresses };
enum class Servers : std::uint8_t { NotAsked, Asked };

class FileAccess;
class PinnedFiles;
class OtherPacks;

// Value of `symfs`: no files are read, names come from the capture only.
inline constexpr std::string_view kNoFiles = "/dev/null";

struct SymbolOptions {
  std::string symfs;         // --symfs: a folder with the recording host's files; empty: this machine's
  std::string kallsyms;      // --kallsyms: a file; empty: the attached one
  std::string perf_map_dir;  // --perf-map-dir: folder of perf-PID.map; empty: /tmp
  std::string jitdump_dir;   // --jitdump-dir: folder of jit-PID.dump; empty: the paths in the capture
  std::string vmlinux;       // -k: the kernel's ELF file, used instead of kallsyms
  int kcore = -1;            // --kcore: a descriptor of the kernel's memory, for its code; -1: none
  bool is_kcore_of_capture = false;  // it was copied with the capture
  std::string build_id_dir;          // --buildid-dir: perf's cache of files by build id; empty: none
  Demangle demangle = Demangle::Yes;
  Inlines inlines = Inlines::No;
  SourceLines source_lines = SourceLines::No;
  CutMark cut_mark = CutMark::AsPerf6;
  Callers callers = Callers::ByCall;
  // For tacho pack: a file with a .symtab is read instead of the pack, if that has only exported names of it.
  bool completes_pack = false;
  bool unwinds_32_bit = true;  // unwind stack copies of 32-bit processes; perf 6.1 does not
  // Names in memory that perf 6.1 does not have: of generated code in a memfd or an unlinked file (perf
  // maps), and of variables in anonymous memory behind a file's data (.bss).
  bool names_memory_files = true;
  // Mappings and names of pid 0, which all processes outside of the recorder's pid namespace have, are used
  // as those of one process, as in perf 6.1.
  bool keeps_pid_zero = false;
  Unnamed unnamed = Unnamed::Functions;
  Labels labels = Labels::OutsideFunctions;
  // On the recorded host, a file with another inode than the mapping's is not used; perf 6.1 uses it.
  bool checks_inodes = true;
  UseSymbolName use_symbol_name = UseSymbolName::Outermost;
  Servers debuginfod = Servers::NotAsked;  // --debuginfod
  FileAccess* access = nullptr;            // to files for unwinding, and to jitdumps
  FileAccess* name_access = nullptr;       // to files with symbols
  const PinnedFiles* pinned = nullptr;     // used for modules whose files do not exist any more
  OtherPacks* others = nullptr;            // the last symbol source
};

// Whether an option names the source for modules of this kind.
inline bool names_are_given(const SymbolOptions& options, ModuleKind kind) {
  switch (kind) {
    case ModuleKind::Kernel:
      return !options.kallsyms.empty() || !options.vmlinux.empty();
    case ModuleKind::KernelModule:
      return !options.kallsyms.empty();
    case ModuleKind::Anonymous:
      return !options.perf_map_dir.empty() || !options.symfs.empty();
    default:
      return !options.symfs.empty();
  }
}

}  // namespace tacho::symbolize
