// Tries which kinds of BPF programs, and which programs of an object, this kernel takes from this process.
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

// libbpf crashes on some damaged objects. So an object that was not compiled here is opened and loaded once
// by a sandboxed child, against a fake kernel that accepts everything: if the child survives, libbpf gets
// it in this process.

// Fails when the child was killed by the object, or worked on it for more than 10 s, or `stop` said so (code
// EINTR). What libbpf merely refuses is no failure here: it will say so again. To be called while the process
// has one thread.
Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop);

}  // namespace tacho::bpf
