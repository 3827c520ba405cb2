// Tries which kinds of BPF programs the kernel lets this process load, and opens foreign objects in a sandbox
// first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct ProgramTrial {
  std::string_view kind;   // "tracepoint", "fentry"
  std::string_view usage;  // what it is good for
  std::string refusal;     // empty: the kernel takes it
};
// Nothing stays loaded or attached.
std::vector<ProgramTrial> try_programs();

// libbpf crashes on some damaged objects. So an object that tacho did not compile is first opened and loaded
// in a sandboxed child, in which a seccomp filter makes every bpf() call succeed without effect. If the child
// survives, libbpf opens the object in this process.

// Fails when the child was killed by the object, or worked on it for more than 10 s, or `stop` said so (code
// EINTR). What libbpf merely refuses is no failure here: it will say so again. To be called while the process
// has one thread.
Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop);

}  // namespace tacho::bpf
