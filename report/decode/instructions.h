// Machine instructions: how long each is, whether it may jump, and its text.
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
  std::size_t size = 0;  // bytes; 0: what stands there is none
  bool is_branch = false;
};

enum class WordSize : std::uint8_t { Bits32, Bits64 };

class Instructions {
 public:
  // `arch` as in the capture's header. Of machines other than x86 and 64-bit Arm nothing is known.
  Instructions(std::string_view arch, WordSize words);
  Instructions(Instructions&&) noexcept;
  Instructions& operator=(Instructions&&) noexcept;
  ~Instructions();

  Instruction first_of(format::Bytes code) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: not a known machine
};

// How x86 code is written; arm64 has one way.
enum class AsmSyntax : std::uint8_t { Att, Intel };

enum class InstructionKind : std::uint8_t {
  Other,
  Jump,  // conditional or not, also out of the function
  Call,
  Return,
  Bad,  // no instruction that capstone knows
};

// One line of a disassembly.
struct DisassembledInstruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0;  // bytes
  InstructionKind kind = InstructionKind::Other;
  bool is_conditional = false;  // of a jump
  std::string mnemonic;
  std::string operands;                 // without `target`, which stands behind them
  std::optional<std::uint64_t> target;  // where a jump or call leads to, when the instruction says it
  std::optional<std::uint64_t> memory;  // the address of an operand that counts from the program counter
};

class Disassembler {
 public:
  // `arch` as in the capture's header.
  Disassembler(std::string_view arch, WordSize words, AsmSyntax syntax);
  Disassembler(Disassembler&&) noexcept;
  Disassembler& operator=(Disassembler&&) noexcept;
  ~Disassembler();

  // False for machines other than x86 and 64-bit Arm.
  bool knows_machine() const { return state_ != nullptr; }
  // All of `code`, whose first byte is at `address`. Bytes that are no instruction are lines of their own.
  std::vector<DisassembledInstruction> disassemble(format::Bytes code, std::uint64_t address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: not a known machine
};

}  // namespace tacho::report
