// Decodes machine instructions with capstone (x86 and 64-bit Arm): length, kind, and disassembly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::report {

struct Instruction {
  std::size_t size = 0;  // bytes; 0: not an instruction
  bool is_branch = false;
};

enum class WordSize : std::uint8_t { Bits32, Bits64 };

// The syntax of x86 assembly; arm64 has only one.
enum class AsmSyntax : std::uint8_t { Att, Intel };

enum class InstructionKind : std::uint8_t {
  Other,
  Jump,  // conditional or not, inside or out of the function
  Call,
  Return,
  Bad,  // bytes that capstone cannot decode
};

// One line of a disassembly.
struct DisassembledInstruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0;  // bytes
  InstructionKind kind = InstructionKind::Other;
  bool is_conditional = false;  // of a jump
  std::string mnemonic;
  std::string operands;                 // without `target`
  std::optional<std::uint64_t> target;  // destination of a direct jump or call
  std::optional<std::uint64_t> memory;  // address of an operand relative to the program counter
};

class Disassembler {
 public:
  // `arch` is the one in the capture's header.
  Disassembler(std::string_view arch, WordSize words, AsmSyntax syntax = AsmSyntax::Att);
  Disassembler(Disassembler&&) noexcept;
  Disassembler& operator=(Disassembler&&) noexcept;
  ~Disassembler();

  bool knows_machine() const { return state_ != nullptr; }
  // The first instruction of `code`; its size is 0 if there is none.
  Instruction first_of(format::Bytes code) const;
  // Disassembles all of `code`, which starts at `address`. Bytes that are no instruction become Bad lines.
  std::vector<DisassembledInstruction> disassemble(format::Bytes code, std::uint64_t address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: unsupported architecture
};

}  // namespace tacho::report
