// What this kernel can do for BPF programs, found by looking and not by version numbers; and words for what
// it cannot.
#pragma once

#include <optional>
#include <string>

#include "bpf/programs/stack_maps.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/section.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

// Fails unless this process may load tracing programs; the error names the capabilities.
Result<> check_may_load();

// The folder where tracefs is mounted. Mounted here when nobody has and we may, as perf does it, and said to
// `log`.
Result<std::string> find_tracefs(const Log& log);

// Why a program of this section cannot be attached here, when that can be told without trying: a tracepoint
// or function that does not exist, a kernel built without kprobes. `tracefs` as found above, or empty.
std::optional<std::string> missing_hook(const Section& section, const std::string& tracefs);

// The same after the kernel or libbpf refused with an errno; empty when there is nothing better than its own
// text.
std::string refusal_in_words(const Section& section, int code);

// The kernel's release ("6.1.0-56-amd64") and its machine ("x86_64").
struct KernelName {
  std::string release, machine;
};
KernelName kernel_name();

// Where the running kernel keeps the mappings of processes, as its BTF tells it, for the program that walks
// stacks.

// The error says what this kernel has not: maple trees came with Linux 6.1.
Result<tacho_kernel_layout> kernel_layout();
// The same of BTF as a kernel gives it.
Result<tacho_kernel_layout> kernel_layout_in(format::Bytes types);

}  // namespace tacho::bpf
