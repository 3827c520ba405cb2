// Parser of a BPF program's section name, SEC("kprobe/vfs_read"), which says what it hooks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::bpf {

enum class Hook : std::uint8_t {
  Tracepoint,     // target "syscalls/sys_enter_openat"
  RawTracepoint,  // target "sys_enter"
  BtfTracepoint,
  Kprobe,  // entry and return alike; target "vfs_read", "vfs_read+0x4"
  KprobeMulti,
  KernelSyscall,
  Uprobe,  // target "/bin/bash:readline"
  Usdt,
  Function,   // fentry, fexit, fmod_ret: through a BPF trampoline
  Iterator,   // iter/task: the recorder runs it before it reads summaries
  AtBegin,    // iter/task, of the program at_begin: the recorder runs it when events are switched on
  Functions,  // entries or returns of functions that the recorder finds (FunctionTargets); target: names, or
              // none
  AtEnd,      // SEC("syscall"): the recorder runs it once, before it reads summaries for the last time
  PerfEvent,  // runs on samples of an event that the recorder opens
  Other,      // whatever else libbpf may know
};
enum class Spelling : std::uint8_t { Libbpf, Perf };

struct Section {
  Hook hook = Hook::Other;
  std::string target;  // empty when the name has none
  Spelling spelling = Spelling::Libbpf;
};

// Sections of programs for Hook::Functions.
constexpr std::string_view kFunctionEntries = "uprobe.multi", kFunctionReturns = "uretprobe.multi";

// Those may name the functions, of a file that the recorder finds: "uprobe.multi/$lib:malloc,free".
constexpr std::string_view kOfLibrary = "/$lib:";

// The target of programs for a tracepoint that the recorder names (FunctionTargets::tracepoint).
constexpr std::string_view kNamedTracepoint = "tacho/named";

// Fails for a section that names no target, and for perf's old probe definitions ("func=do_sys_open flags"),
// with the spelling to write instead.
Result<Section> parse_section(std::string_view name);

}  // namespace tacho::bpf
