// Programs that are made here, into the kernel.
#pragma once

#include <linux/bpf.h>

#include <span>
#include <string>

#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// `name`: 15 letters at most, as `tacho list bpf` shows it. `what` it is, for the error, which has the errno.
Result<format::Fd> load_made(bpf_prog_type type, const char* name, std::span<const bpf_insn> program,
                             const std::string& what);

}  // namespace tacho::bpf
