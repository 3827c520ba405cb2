// Parser of call frame information (DWARF 5 section 6.4, and the Linux Standard Base for .eh_frame): for each
// address of a function, where its frame starts and where the registers of its caller are saved.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::unwind {

enum class CfiForm : std::uint8_t { EhFrame, DebugFrame };
enum class CfiMachine : std::uint8_t { X86_64, Arm64 };

// A section's bytes and its address in the ELF file. Parsed entries point into its bytes.
struct CfiSection {
  format::Bytes bytes;
  std::uint64_t address = 0;
  CfiForm form = CfiForm::EhFrame;
  std::endian order = std::endian::little;
  std::uint8_t address_size = 8;  // bytes of an address of the machine: 4 in a 32-bit file
  CfiMachine machine = CfiMachine::X86_64;
};

// How the caller's value of a register is restored.
enum class RuleKind : std::uint8_t {
  Same,             // it is unchanged
  Undefined,        // it is lost
  AtCfa,            // it is in memory at CFA + value
  IsCfa,            // it is CFA + value
  Register,         // it is in the register with this number
  Expression,       // it is in memory at the expression's address
  ValueExpression,  // it is the expression's value
};
struct Rule {
  RuleKind kind = RuleKind::Same;
  std::int64_t value = 0;
  format::Bytes expression;
};

// The CFA (canonical frame address: the caller's stack pointer before the call): register + offset, or an
// expression.
struct CfaRule {
  enum class Kind : std::uint8_t { None, Register, Expression } kind = Kind::None;
  std::uint64_t base = 0;  // number of the register
  std::int64_t offset = 0;
  format::Bytes expression;
};

// DWARF numbers of general registers are up to 16 on x86-64, up to 31 on arm64; vector registers are ignored.
inline constexpr std::uint64_t kRegisterCount = 33;

struct SavedRegister {
  std::uint8_t number = 0;
  Rule rule;
};

// The rules at one address.
struct UnwindRow {
  CfaRule cfa;
  std::vector<SavedRegister> saved;  // registers that are not listed are unchanged
  std::uint8_t return_register = 0;
  bool is_signal_frame = false;  // the caller was interrupted, and made no call
  bool signs_returns = false;    // arm64: the return address has a pointer authentication code
};

struct Cie {
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint64_t return_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool is_signal_frame = false;
  bool has_sized_augmentation = false;
  std::uint8_t address_size = 8;
  format::Bytes program;
};

// A frame description entry: the call frame information of one function, [start, end) in ELF addresses.
struct Fde {
  std::uint64_t start = 0, end = 0;
  Cie cie;
  format::Bytes program;
};

struct FdeRange {
  std::uint64_t start = 0, end = 0;
  std::uint64_t offset = 0;  // of the FDE in its section
  bool is_signal_frame = false;
};

// Reads a pointer in an encoding of .eh_frame (DW_EH_PE). `end_address`: the address of the cursor's end;
// `data_base`: the base of data-relative pointers; `address_size`: of absolute pointers. Nothing: it is
// omitted, indirect (its value is only in memory) or of an unknown encoding.
std::optional<std::uint64_t> read_encoded(format::Cursor& in, std::uint8_t encoding,
                                          std::uint64_t end_address, std::uint64_t data_base = 0,
                                          std::uint8_t address_size = 8);

// The FDE at `offset` of the section; nothing: there is none, or it is damaged.
std::optional<Fde> parse_fde(const CfiSection& section, std::uint64_t offset);
// The same for many FDEs: the last CIE is kept, which consecutive FDEs share. The section must outlive it.
class FdeParser {
 public:
  explicit FdeParser(const CfiSection& section) : section_(&section) {}
  std::optional<Fde> at(std::uint64_t offset);

 private:
  const CfiSection* section_;
  std::uint64_t cie_offset_ = ~std::uint64_t{0};
  std::optional<Cie> cie_;
};
// All FDEs that can be parsed, ascending by start, without those of .debug_frame at address 0: functions that
// the linker left out. `stop` is polled; true ends the list early.
std::vector<FdeRange> list_fdes(const CfiSection& section, const std::function<bool()>& stop = {});
// The rules at `pc`, an address of the function; nothing: its instructions are damaged.
std::optional<UnwindRow> evaluate_cfi(const CfiSection& section, const Fde& fde, std::uint64_t pc);

// The rules for all addresses in [start, end), valid during the callback.
struct CfiRow {
  std::uint64_t start = 0, end = 0;
  const CfaRule& cfa;
  std::span<const Rule, kRegisterCount> rules;  // by DWARF's number
  bool is_signal_frame = false;
};
struct CfiWalk {
  bool is_whole = false;  // false: the instructions are damaged, and rules from `end` on are unknown
  std::uint64_t end = 0;
};
// Calls `row` for all rows of the function, ascending and without gaps.
CfiWalk walk_cfi(const CfiSection& section, const Fde& fde, const std::function<void(const CfiRow&)>& row);

}  // namespace tacho::unwind
