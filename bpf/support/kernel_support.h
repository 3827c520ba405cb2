// What this kernel can do for BPF programs, found by probing and not by version numbers; and the layout of
// its mappings.
#pragma once

#include <optional>
#include <string>

#include "bpf/programs/stack_maps.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/section.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

// ENOTSUPP, which the kernel returns to programs although it has no text for them.
inline constexpr int kNotSupportedInKernel = 524;

// Fails unless this process may load tracing programs; the error names the capabilities.
Result<> check_may_load();

// The folder where tracefs is mounted. Mounts it where it is missing and the rights allow it, as perf does,
// and writes that to `log`.
Result<std::string> find_tracefs(const Log& log);

// Why a program of this section cannot be attached here, when that is known without trying: a tracepoint or
// function that does not exist, a kernel built without kprobes. `tracefs` as found above, or empty.
std::optional<std::string> missing_hook(const Section& section, const std::string& tracefs);

// The same after the kernel or libbpf refused with an errno; empty when there is nothing better than its own
// text.
std::string refusal_in_words(const Section& section, int code);

// The kernel's release ("6.1.0-56-amd64") and its machine ("x86_64").
struct KernelName {
  std::string release, machine;
};
KernelName kernel_name();

// Layout of the running kernel's structures of mappings, from its BTF, for the program that walks stacks.

// The error names what this kernel does not have: maple trees came with Linux 6.1.
Result<tacho_kernel_layout> kernel_layout();
// The same of BTF as a kernel gives it.
Result<tacho_kernel_layout> kernel_layout_in(format::Bytes types);

}  // namespace tacho::bpf
