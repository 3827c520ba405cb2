// BPF programs in a capture: their functions with names from BTF, their instructions as text, and the
// kernel's functions that they call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/environment.h"
#include "format/container/features.h"

namespace tacho::report {

// A source line and the start of its code. Its texts are unchecked bytes, not safe to print.
struct BpfLine {
  // Of machine code: bytes from the function's start; else the instruction's number.
  std::uint64_t offset = 0;
  std::string_view file, text;  // of a stripped program `text` is empty
  std::uint32_t line = 0, column = 0;
};

struct BpfFunction {
  std::string name;         // as perf names it, "bpf_prog_TAG_NAME"; unchecked bytes, not safe to print
  std::string prototype;    // "int helper(void * map)"; unchecked; empty: not in the BTF
  std::uint32_t first = 0;  // the number of its first translated instruction
  std::uint64_t address = 0;
  std::uint32_t size = 0;      // bytes
  format::Bytes code;          // machine code of the kernel's JIT compiler; empty: not in the capture
  std::vector<BpfLine> lines;  // of machine code, as the kernel has them: ascending by offset
};

// Names and numbers are unchecked, not safe to print.
struct BpfProgram {
  std::uint32_t id = 0;
  std::string type, name;  // "tracing"; the function's name, or else the 15 characters that the kernel keeps
  std::string tag;         // 16 hexadecimal digits
  std::uint32_t loaded_by = 0;  // user id
  std::uint32_t translated_bytes = 0, machine_bytes = 0;
  std::uint64_t runs = 0, nanoseconds = 0;  // counted while the kernel's statistics were on
  std::uint64_t skipped = 0;        // runs that were skipped because the program was running on that CPU
  std::vector<std::uint32_t> maps;  // their ids, if the capture has them
  format::Bytes translated;         // instructions after the verifier; empty: not in the capture
  std::vector<BpfLine> lines;       // of the translated instructions

  // Whether `text` is its name, id or tag.
  bool is_called(std::string_view text) const {
    return name == text || tag == text || std::to_string(id) == text;
  }
};

// Functions and texts in one BTF blob. `blob` must outlive this.
class BtfFunctions {
 public:
  explicit BtfFunctions(format::Bytes blob);
  // Empty if the type is no function.
  std::string_view name(std::uint32_t type) const;
  // "int helper(struct key * key)", as bpftool prints it; empty if the type is no function.
  std::string prototype(std::uint32_t type) const;
  // The string at an offset of the string section.
  std::string_view text(std::uint32_t offset) const;

 private:
  struct Type {
    std::string_view name;
    std::uint32_t info = 0, refers_to = 0;
    std::uint32_t members_offset = 0;  // in types_
    std::uint32_t kind() const { return info >> 24 & 0x1f; }
  };
  std::optional<Type> type(std::uint32_t number) const;
  bool write(std::uint32_t number, unsigned depth, std::string& to) const;
  bool write_function(const Type& prototype, std::string_view name, unsigned depth, std::string& to) const;

  format::Bytes types_, strings_;
  std::vector<std::uint32_t> offsets_;  // offsets in types_ of type 1, 2, ...
};

// "array", "percpu_hash", with bpftool's names; "#99" for an unknown type.
std::string bpf_map_type(std::uint32_t type);

// The functions of BPF programs in a capture: from struct bpf_prog_info in HEADER_BPF_PROG_INFO, with names
// from BTF (Documentation/bpf/btf.rst).
class BpfFunctions {
 public:
  // `environment` must outlive this.
  explicit BpfFunctions(const format::Environment& environment) : environment_(&environment) {}
  // Empty if the capture has no such information about the program.
  std::vector<BpfFunction> functions_of(const format::BpfProgramInfo& program);
  BpfProgram program(const format::BpfProgramInfo& program);
  static std::uint32_t id(const format::BpfProgramInfo& program);

 private:
  const BtfFunctions* btf(std::uint32_t id);
  std::vector<BpfLine> translated_lines(const format::BpfProgramInfo& program);
  void add_machine_lines(const format::BpfProgramInfo& program, std::vector<BpfFunction>& functions);

  const format::Environment* environment_;
  std::map<std::uint32_t, std::optional<BtfFunctions>> btf_;  // by id, read on first use
};

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
