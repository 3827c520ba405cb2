// BPF programs that run in the kernel already, whoever loaded them: a recorder writes KSYMBOL and BPF_EVENT
// records and program info for them, as the kernel does for those loaded later.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/environment.h"
#include "format/result.h"

namespace tacho::bpf {

struct LoadedSymbol {
  std::uint64_t address = 0;
  std::uint32_t length = 0;  // bytes
  std::string name;          // "bpf_prog_TAG_NAME", as the kernel's own KSYMBOL records have it
};
struct LoadedProgram {
  std::uint32_t id = 0;
  std::array<std::uint8_t, 8> tag{};
  std::vector<LoadedSymbol> symbols;  // one for each function
  format::BpfProgramInfo info;
  format::BtfBlob btf;  // the program's types, which several programs may share; id 0 when it has none
};

// Needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON); the error says so.
Result<std::vector<LoadedProgram>> loaded_programs();

}  // namespace tacho::bpf
