// Decodes machine instructions with capstone (x86 and 64-bit Arm): length, kind, and disassembly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

// Bounds how many instructions of one file are shown or packed: functions may overlap, so that a small file
// has any number of them.
class InstructionBudget {
 public:
  static constexpr std::size_t kMost = std::size_t{1}
                                       << 20;  // more than the code that samples hit in any program
  // Takes the instructions of a function. False: those of other functions leave no room for them.
  bool take_instructions(const void* file, std::size_t count) {
    std::size_t& taken = taken_[file];
    if (taken >= kMost) return false;
    taken += count;
    return true;
  }
  bool is_spent(const void* file) const {
    const auto found = taken_.find(file);
    return found != taken_.end() && found->second >= kMost;
  }

 private:
  std::map<const void*, std::size_t> taken_;
};

}  // namespace tacho::report
