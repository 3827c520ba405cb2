// Tests which kinds of BPF programs this process may load, and whether libbpf survives an object.
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
  std::string_view usage;  // what needs it
  std::string refusal;     // empty: it can be loaded
};
// Loads each kind, and unloads it again.
std::vector<ProgramTrial> try_programs();

// For an object that tacho did not compile: opens and loads it in a sandboxed child, since libbpf crashes on
// some damaged objects. There a seccomp filter makes every bpf() call succeed without effect. If the child
// survives, libbpf may open the object in this process. An error: the child crashed or needed more than 10 s,
// or `stop` returned true (code EINTR). An object that libbpf refuses is no error here. Call it while the
// process has one thread.
Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop);

}  // namespace tacho::bpf
