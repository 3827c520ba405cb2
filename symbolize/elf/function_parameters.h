// Parameters and return values of functions, from DWARF: for probes by name, and for recorded calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/address.h"
#include "symbolize/elf/debug_image.h"

namespace tacho::symbolize {

// How a probe reads a value. It begins with the register's value; then for each of `pointers`, in order, it
// reads the pointer at that value plus pointers[i]. The result:
//   Register: bits of the register from `shift` on
//   Memory:   the memory at the value plus `displacement`
//   Address:  the value plus `displacement` itself
struct ParameterValue {
  std::string_view register_name;  // "rdi"
  std::uint8_t shift = 0;          // bits
  enum class From : std::uint8_t { Register, Memory, Address } from = From::Register;
  std::int64_t displacement = 0;
  std::vector<std::int64_t> pointers = {};
  std::uint8_t size = 8;  // bytes
  enum class Kind : std::uint8_t { Unsigned, Signed, Pointer, Text } kind = Kind::Unsigned;

  bool operator==(const ParameterValue&) const = default;
};

// The names of an enumeration's numbers, in their order in the source.
using EnumNames = std::vector<std::pair<std::int64_t, std::string>>;

struct ValueType {
  enum class Kind : std::uint8_t {
    Unsigned,
    Signed,
    Bool,
    Character,
    Enumeration,
    Pointer,  // or a reference
    Text,     // a pointer to characters
    Floating,
    Struct,  // or an array or union: several values
  };
  Kind kind = Kind::Unsigned;
  std::uint8_t bytes = 8;                  // of a number: 1, 2, 4 or 8
  std::string name;                        // "struct request *"
  std::shared_ptr<const EnumNames> names;  // Enumeration; never null there
};

struct Argument {
  static constexpr std::uint8_t kNoRegister = 0xff;
  std::string name;  // empty: it has none
  ValueType type;
  // The integer register that holds it: 0 rdi, 1 rsi, 2 rdx, 3 rcx, 4 r8, 5 r9; x0 to x5. kNoRegister: it is
  // in memory, in several registers, or in a floating-point register.
  std::uint8_t integer_register = kNoRegister;
};

struct Prototype {
  std::vector<Argument> arguments;
  std::optional<ValueType> returned;  // nothing: void, or the value is not returned in rax (x0)
};

// The parameters and return values of functions, from the DWARF of their file. x86-64 and arm64.
class FunctionParameters {
 public:
  // `file` is open for reading. The error does not name it.
  static Result<FunctionParameters> open(format::Fd file);
  FunctionParameters(FunctionParameters&&) noexcept;
  FunctionParameters& operator=(FunctionParameters&&) = delete;
  ~FunctionParameters();

  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(format::Fd file);

  // Finds the parameters of a function by name, and where their values are at its entry, for probes with
  // arguments. `wanted`: "size", "request->head.length", "point.x". `symbol`: the linker's name of the
  // function that begins at `entry`. The error says which of them cannot be read and why, and lists the
  // function's parameters; `wanted` "?" gives that list only.
  //
  // DW_AT_location is used if it is valid at the first instruction. If it is missing, or describes where the
  // function stores the value later, the calling convention and the declared types decide: for functions with
  // external linkage, in languages that follow the convention.
  Result<std::vector<ParameterValue>> find_values(format::ElfAddress entry, std::string_view symbol,
                                                  const std::vector<std::string>& wanted) const;

  // Types and registers of the parameters and return values of the functions that start at `entries`, in
  // their order, to print the arguments of recorded calls. Nothing for functions that are not described, or
  // in languages that do not follow the calling convention. All are found in one walk over the file.
  std::vector<std::optional<Prototype>> prototypes(std::span<const format::ElfAddress> entries) const;

 private:
  struct State;
  explicit FunctionParameters(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
