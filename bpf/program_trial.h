// Which kinds of BPF programs this kernel takes from this process, found by loading one that does nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::bpf {

struct ProgramTrial {
  std::string_view kind;   // "tracepoint", "fentry"
  std::string_view usage;  // what it is good for
  std::string refusal;     // empty: the kernel takes it
};
// Nothing stays loaded or attached.
std::vector<ProgramTrial> try_programs();

}  // namespace tacho::bpf
