// BPF features of this kernel, found by trying and not by version numbers; and the layout of its mappings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bpf/programs/stack_maps.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/section.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

struct btf;  // libbpf's
struct btf_type;

namespace tacho::bpf {

// ENOTSUPP, a kernel-internal errno that bpf() returns nevertheless.
inline constexpr int kNotSupportedInKernel = 524;

// Whether this process is in a user namespace of its own, as in a rootless container: its capabilities do not
// count for BPF programs and for events of other processes.
bool is_in_user_namespace();

// Checks that this process may load tracing programs; the error names the capabilities.
Result<> check_may_load();

// The folder where tracefs is mounted. Mounts it if it is missing and the rights suffice, as perf does, with
// a line to `log`.
Result<std::string> find_tracefs(const Log& log);

// Why a program of this section cannot be attached, as far as it is known without trying: the tracepoint or
// function does not exist, the kernel has no kprobes. `tracefs`: of find_tracefs(), or empty.
std::optional<std::string> missing_hook(const Section& section, const std::string& tracefs);

// A message for the errno of a refusal; empty: there is none better than the errno's.
std::string refusal_in_words(const Section& section, int code);

// The kernel's release ("6.1.0-56-amd64") and its machine ("x86_64").
struct KernelName {
  std::string release, machine;
};
KernelName kernel_name();

// The type without const, volatile and typedefs; null if they form a cycle.
const btf_type* plain_type(const btf* types, std::uint32_t id);

// A member of a struct or union in BTF.
struct BtfMember {
  std::uint32_t type = 0;  // id
  std::uint32_t bit = 0;   // offset, in bits
  std::uint32_t bits = 0;  // size of a bit field; otherwise 0
};
// `path`: "ma_root", "mm_mt.ma_root". Also finds members of anonymous structs.
std::optional<BtfMember> find_member(const btf* types, const btf_type* owner, std::string_view path);

// Layout of the running kernel's structures of mappings, from its BTF, for the unwinder. The error names what
// this kernel does not have: maple trees came with Linux 6.1.
Result<tacho_kernel_layout> kernel_layout();
// The same for a kernel's BTF.
Result<tacho_kernel_layout> kernel_layout_in(format::Bytes types);

}  // namespace tacho::bpf
