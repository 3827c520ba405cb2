// Frame: the result of looking up an address, with function, module and source line. An address inside
// inlined calls has several frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/records/address.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

enum class ModuleKind : std::uint8_t {
  User,          // a file
  Kernel,        // "[kernel.kallsyms]"
  KernelModule,  // "[ext4]"
  Vdso,          // "[vdso]"
  Bpf,           // "bpf_prog_TAG_NAME"
  Anonymous,     // "//anon", "[heap]", "[stack]": generated code
  GuestKernel,   // "[guest.kernel.kallsyms]"
};

// The identity of a file in an MMAP2 record without build id.
struct MappedFile {
  std::uint32_t major = 0, minor = 0;       // of the device
  std::uint64_t inode = 0, generation = 0;  // 0: not recorded
  // Whether these are certainly two files. Inodes are only compared on one device: overlayfs and btrfs report
  // other devices in stat() than in mappings.
  bool is_other_than(const MappedFile& other) const {
    const bool is_comparable = inode != 0 && other.inode != 0 && major == other.major && minor == other.minor;
    if (!is_comparable) return false;
    return inode != other.inode ||
           (generation != 0 && other.generation != 0 && generation != other.generation);
  }
};

// A module (perf: dso), with perf's names. One Module for each (path, build id), and more if different files
// had the same path one after the other. Its creator owns the bytes of the names.
struct Module {
  ModuleKind kind = ModuleKind::User;
  std::string_view path;        // perf script's dso: the full path, or the names above
  std::string_view short_name;  // perf report's Shared Object: the last part of the path
  format::BuildId build_id;
  std::string_view file = {};   // of a kernel module: the path of its .ko file; empty: unknown
  std::uint64_t fork_time = 0;  // of generated code: of its process, ns; 0: unknown
  MappedFile mapped = {};       // of a file whose mappings have no build ids

  // Whether its names are a guess, since the capture does not identify the file (no build id).
  bool is_unsure() const {
    return kind == ModuleKind::User && build_id.empty() && path.starts_with('/') &&
           !short_name.starts_with("jitted-");
  }
};

// A module in which call chains end, and why.
struct EndedChains {
  const Module* module = nullptr;
  std::string reason;
  bool was_used = false;  // its file was used before that was known: some samples may be wrong
};

// Whether a frame's source line is known.
enum class LineState : std::uint8_t {
  NotRequested,
  NoSource,  // the module has no line information: perf shows "MODULE[address]" or "SYMBOL+offset" instead
  Unknown,   // the module has symbols or DWARF, but not this line: perf shows nothing
  Known,     // `file` and `line`; "??" and 0 where perf shows "??:0", in an unwound stack
};

// The strings stay valid as long as the Symbolizer that returned the frame.
struct Frame {
  const Module* module = nullptr;  // null: nothing was mapped there
  std::string_view function;       // empty: unknown; demangled if the options say so
  std::string_view linker_name;    // its mangled name; empty: unknown
  format::RuntimeAddress ip;       // as sampled
  // As perf prints it in a call chain: map-relative in user code, ip in the kernel.
  std::uint64_t shown_address = 0;
  std::uint64_t function_start = 0;  // in the space of shown_address; offset = shown_address - function_start
  std::uint64_t function_end = 0;    // first address past it; function_start: unknown
  std::uint8_t cpumode = 0;          // abi::Misc; report prints it as k . g u H
  char source = '!';                 // perf's letter for the symbol source: k kallsyms, d dso .symtab, ...
  bool is_inlined = false;
  bool is_guess = false;  // the names may be those of another file
  bool is_data = false;   // the symbol is a variable
  // There is no symbol: `function` is the module's name and the start of the function's range in .eh_frame.
  bool is_unnamed = false;
  LineState line_state = LineState::NotRequested;
  std::string_view file;  // with its folder; empty: unknown or not requested
  std::uint32_t line = 0;
  std::uint64_t elf_address = 0;  // address in the module's DWARF; equals shown_address if there is no file
};

}  // namespace tacho::symbolize
