// Instructions of BPF programs as text, and the names of the kernel's functions that they call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/environment.h"
#include "format/container/features.h"

namespace tacho::report {

// struct bpf_insn.
struct BpfInstruction {
  std::uint8_t code = 0;
  std::uint8_t destination = 0, source = 0;  // registers; in `source` also the kind of the immediate
  std::int16_t offset = 0;
  std::int32_t immediate = 0;

  // A call of the kernel, of a kfunc, or of a function of the program.
  bool is_call() const;
  bool calls_own_function() const;
};

// The target of a call: "bpf_map_lookup_elem", or "+12#bpf_prog_0123456789abcdef_helper" for a function of
// the program. nullopt: "unknown", or "+12".
using BpfCallName = std::function<std::optional<std::string>(const BpfInstruction&)>;

struct BpfCodeLine {
  std::uint32_t number = 0;  // of the instruction; one with an immediate of 64 bits counts as two
  BpfInstruction instruction;
  std::string text;  // "(79) r1 = *(u64 *)(r1 +8)"
  // The number of the instruction to which it jumps, or with which the called function begins.
  std::optional<std::uint32_t> target;
};

// Disassembles all instructions of `code` (RFC 9669, Documentation/bpf/standardization), in the form of the
// kernel's verifier log and `bpftool prog dump xlated`. Nothing is read beyond its end: the last immediate of
// 64 bits may be cut, and bytes of an incomplete instruction are ignored.
std::vector<BpfCodeLine> disassemble_bpf(format::Bytes code, const BpfCallName& name_of_call);

// The lines of kallsyms with functions that the capture's BPF programs call: `tacho pack` keeps these.
inline constexpr std::string_view kBpfCallsAttachment = "bpf-calls";

// The kernel's functions that BPF programs call, by address.
class BpfCallNames {
 public:
  // Reads the attached kallsyms or, in a packed capture, the attachment bpf-calls. Without both, no function
  // has a name.
  explicit BpfCallNames(const format::Features& features);

  // The function that begins at the address; empty: unknown. Unchecked bytes, not safe to print.
  std::string_view at(std::uint64_t address) const;
  // The function called by a translated instruction, whose immediate is the distance from __bpf_call_base.
  std::string_view called(std::int32_t distance) const;

  // The lines of kallsyms with functions that the capture's programs call. Empty: no called function has a
  // name.
  std::string lines_of_calls(const format::Environment& environment) const;

 private:
  std::uint64_t address_of(std::int32_t distance) const {
    return base_ + static_cast<std::uint64_t>(std::int64_t{distance});
  }
  std::vector<std::byte> text_;
  std::vector<std::pair<std::uint64_t, std::string_view>> names_;  // ascending
  std::uint64_t base_ = 0;                                         // address of __bpf_call_base; 0: unknown
};

}  // namespace tacho::report
