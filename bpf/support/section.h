// Parser of a BPF program's section name, SEC("kprobe/vfs_read").
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
  Kprobe,  // entry or return; target "vfs_read", "vfs_read+0x4"
  KprobeMulti,
  KernelSyscall,
  Uprobe,  // target "/bin/bash:readline"
  Usdt,
  Function,   // fentry, fexit, fmod_ret: through a BPF trampoline
  Iterator,   // iter/task: the recorder runs it before it reads summaries
  AtBegin,    // iter/task, the program at_begin: the recorder runs it when events are enabled
  Functions,  // entries or returns of functions that the recorder chooses (FunctionTargets); target: names,
              // or none
  AtEnd,      // SEC("syscall"): the recorder runs it once, before the last reading of summaries
  PerfEvent,  // on samples of an event that the recorder opens
  Other,      // any other section of libbpf
};
enum class Spelling : std::uint8_t { Libbpf, Perf };

struct Section {
  Hook hook = Hook::Other;
  std::string target;  // empty: none
  Spelling spelling = Spelling::Libbpf;
};

// Sections of programs for Hook::Functions.
constexpr std::string_view kFunctionEntries = "uprobe.multi", kFunctionReturns = "uretprobe.multi";

// Such a section may name functions of a file that the recorder chooses: "uprobe.multi/$lib:malloc,free".
constexpr std::string_view kOfLibrary = "/$lib:";

// The target of programs on a tracepoint that the recorder chooses (FunctionTargets::tracepoint).
constexpr std::string_view kNamedTracepoint = "tacho/named";

// An error for a section without its target, and for perf's old probe definitions ("func=do_sys_open flags"),
// with what to write instead.
Result<Section> parse_section(std::string_view name);

}  // namespace tacho::bpf
