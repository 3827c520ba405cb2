// Options about symbol sources and how names are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "symbolize/elf/inline_calls.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

enum class Demangle : std::uint8_t { Yes, No, Whole };  // Whole: with parameters
// Which stacks get frames for inlined calls: perf gives them to those it unwound.
enum class Inlines : std::uint8_t { No, Unwound, All };
enum class SourceLines : std::uint8_t { No, Yes };
// Which stacks get a last frame at the address -1, because their copy ended before they did. AsPerf6: those
// where perf 6.1 has it, which takes the bytes behind the copy for zeros (on x86-64 alone). All: each of
// them. None: as in perf 7.
enum class CutMark : std::uint8_t { AsPerf6, All, None };
// Where a caller's function, inlined calls and line are looked up. ByCall: at its address minus one, which is
// in the call. ByReturnAddress: as perf, behind the call, where the next function may begin.
enum class Callers : std::uint8_t { ByCall, ByReturnAddress };
// How code without a symbol is named: by the function range (FDE) in .eh_frame that covers it, or, as in
// perf, by its address.
enum class Unnamed : std::uint8_t { Functions, Addresses };
enum class Servers : std::uint8_t { NotAsked, Asked };

class FileAccess;
class PinnedFiles;
class OtherPacks;

// Value of `symfs` for no folder at all: names come from the capture only.
inline constexpr std::string_view kNoFiles = "/dev/null";

struct SymbolOptions {
  std::string
      symfs;  // --symfs: a folder that stands for the recording host's root; empty: this machine's files
  std::string kallsyms;      // --kallsyms: a file; empty: the one attached to the capture
  std::string perf_map_dir;  // --perf-map-dir: folder of perf-PID.map; empty: /tmp
  std::string jitdump_dir;   // --jitdump-dir: folder of jit-PID.dump; empty: as the capture says
  std::string vmlinux;       // -k: the kernel's own file, for names and lines instead of kallsyms
  std::string build_id_dir;  // --buildid-dir: perf's cache of files by build id; empty: none
  Demangle demangle = Demangle::Yes;
  Inlines inlines = Inlines::No;
  SourceLines source_lines = SourceLines::No;
  CutMark cut_mark = CutMark::AsPerf6;
  Callers callers = Callers::ByCall;
  bool unwinds_32_bit = true;  // copied stacks of 32-bit processes; perf 6.1 does not
  // Code made in a memfd or an unlinked file has the names of perf maps; perf 6.1 gives it none.
  bool names_memory_files = true;
  Unnamed unnamed = Unnamed::Functions;
  // On the recorded host, a file with another inode than the mapping's gives no names; perf 6.1 takes it.
  bool checks_inodes = true;
  StandIn stand_in = StandIn::OwnCode;
  Servers debuginfod = Servers::NotAsked;  // --debuginfod
  FileAccess* access = nullptr;            // to files that stacks are unwound with, and to jitdumps
  FileAccess* name_access = nullptr;       // to files that names are read from; both must outlive their users
  const PinnedFiles* pinned = nullptr;     // files of modules that are gone by their names; likewise
  OtherPacks* others = nullptr;            // where names come from last; must outlive its users
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
