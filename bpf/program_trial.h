// Which kinds of BPF programs this kernel takes from this process, found by loading one that does nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

struct ProgramTrial {
  std::string_view kind;   // "tracepoint", "fentry"
  std::string_view usage;  // what it is good for
  std::string refusal;     // empty: the kernel takes it
};
// Nothing stays loaded or attached.
std::vector<ProgramTrial> try_programs();

// libbpf dies of some damaged objects. So what was not compiled here is opened and loaded once by a child
// process that may do nothing, against a kernel that says yes to everything: what the child survives is given
// to libbpf in this process.

// Fails when the child was killed by the object, or worked on it for more than 10 s, or `stop` said so (code
// EINTR). What libbpf merely refuses is no failure here: it will say so again. To be called while the process
// has one thread.
Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop);

}  // namespace tacho::bpf
