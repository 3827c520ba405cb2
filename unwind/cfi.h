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

// A section's bytes and its address in the ELF file. Everything parsed out of it points into its bytes.
struct CfiSection {
  format::Bytes bytes;
  std::uint64_t address = 0;
  CfiForm form = CfiForm::EhFrame;
  std::endian order = std::endian::little;
  std::uint8_t address_size = 8;  // bytes of an address of the machine: 4 in a 32-bit file
};

// How the caller's value of a register is found.
enum class RuleKind : std::uint8_t {
  Same,             // unchanged
  Undefined,        // lost
  AtCfa,            // in memory at CFA + value
  IsCfa,            // CFA + value
  Register,         // in the register with this number
  Expression,       // in memory at the expression's address
  ValueExpression,  // the expression's value
};
struct Rule {
  RuleKind kind = RuleKind::Same;
  std::int64_t value = 0;
  format::Bytes expression;
};

// CFA (the canonical frame address, where the caller's stack pointer stood): register + offset or an
// expression.
struct CfaRule {
  enum class Kind : std::uint8_t { None, Register, Expression } kind = Kind::None;
  std::uint64_t base = 0;  // number of the register
  std::int64_t offset = 0;
  format::Bytes expression;
};

// x86-64 numbers its registers up to 16 and arm64 up to 31 in DWARF; vector registers do not matter here.
inline constexpr std::uint64_t kRegisterCount = 33;

struct SavedRegister {
  std::uint8_t number = 0;
  Rule rule;
};

// The rules at one address.
struct UnwindRow {
  CfaRule cfa;
  std::vector<SavedRegister> saved;  // registers not listed are the same
  std::uint8_t return_register = 0;
  bool is_signal_frame = false;  // what was interrupted stands here, not what called
  bool signs_returns = false;    // arm64: the return address carries an authentication code
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

// A pointer in one of the encodings of .eh_frame (DW_EH_PE). `end_address` is the address just past the
// cursor's bytes, `data_base` what data-relative pointers count from. Nothing when it is omitted, indirect
// (its value is only in memory) or of an unknown kind. `address_size`: of one that is as wide as the
// machine's.
std::optional<std::uint64_t> read_encoded(format::Cursor& in, std::uint8_t encoding,
                                          std::uint64_t end_address, std::uint64_t data_base = 0,
                                          std::uint8_t address_size = 8);

// The FDE at `offset` of the section; nothing when there is none, or a damaged one.
std::optional<Fde> parse_fde(const CfiSection& section, std::uint64_t offset);
// Every FDE that can be read, ascending by start. `stop` is asked between them: true ends the list early.
std::vector<FdeRange> list_fdes(const CfiSection& section, const std::function<bool()>& stop = {});
// The rules at `pc`, an address of the function. Nothing when its program is damaged.
std::optional<UnwindRow> evaluate_cfi(const CfiSection& section, const Fde& fde, std::uint64_t pc);

// The rules of all addresses in [start, end), as they are while a function's program is walked.
struct CfiRow {
  std::uint64_t start = 0, end = 0;
  const CfaRule& cfa;
  std::span<const Rule, kRegisterCount> rules;  // by DWARF's number
  bool is_signal_frame = false;
};
struct CfiWalk {
  bool is_whole = false;  // else the program is damaged, and from `end` on nothing is known
  std::uint64_t end = 0;
};
// Every row of the function, ascending and without gaps.
CfiWalk walk_cfi(const CfiSection& section, const Fde& fde, const std::function<void(const CfiRow&)>& row);

}  // namespace tacho::unwind
