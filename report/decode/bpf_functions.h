// BPF programs in a capture, and their functions with names from BTF.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/environment.h"

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

}  // namespace tacho::report
