// Disassembles the instructions of BPF programs (RFC 9669, Documentation/bpf/standardization), in the form of
// the kernel's verifier log and `bpftool prog dump xlated`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::report {

// struct bpf_insn.
struct BpfInstruction {
  std::uint8_t code = 0;
  std::uint8_t destination = 0, source = 0;  // registers, or in `source` what the immediate stands for
  std::int16_t offset = 0;
  std::int32_t immediate = 0;

  // A call of the kernel, of a kfunc, or of a function of the program.
  bool is_call() const;
  bool calls_own_function() const;
};

// What a call calls: "bpf_map_lookup_elem", "+12#bpf_prog_0123456789abcdef_helper" of a function of the
// program. Without a name: "unknown", and "+12".
using BpfCallName = std::function<std::optional<std::string>(const BpfInstruction&)>;

struct BpfCodeLine {
  std::uint32_t number = 0;  // of the instruction; one with an immediate of 64 bits counts as two
  BpfInstruction instruction;
  std::string text;  // "(79) r1 = *(u64 *)(r1 +8)"
  std::optional<std::uint32_t>
      target;  // number of the instruction that it jumps to, or whose function it calls
};

// All instructions of `code`. Nothing is read behind its end: the last immediate of 64 bits may be cut, and
// bytes that are no whole instruction are left out.
std::vector<BpfCodeLine> disassemble_bpf(format::Bytes code, const BpfCallName& name_of_call);

}  // namespace tacho::report
