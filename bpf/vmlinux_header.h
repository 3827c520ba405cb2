// "vmlinux.h": every type of a kernel as C, from its BTF.
#pragma once

#include <string>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

// `btf` as in /sys/kernel/btf/vmlinux.
Result<std::string> vmlinux_header(format::Bytes btf);

}  // namespace tacho::bpf
