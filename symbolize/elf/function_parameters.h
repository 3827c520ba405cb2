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

// Finds the parameters of a function by name, and where their values are at its entry, for probes with
// arguments. x86-64.
//
// DW_AT_location at the first instruction is used if it is valid there. Where it is missing, or is the place
// to which the function copies the value later, the calling convention and the declared types decide: for
// functions with external linkage, in languages that follow the convention.

// Location of a value: bits of a register from `shift` on; or memory at the register's value plus
// `displacement`. `pointers` are followed before: the value is replaced by the pointer at the value plus
// pointers[i], in order.
struct ParameterValue {
  std::string_view register_name;                                                      // "rdi"
  std::uint8_t shift = 0;                                                              // bits
  enum class From : std::uint8_t { Register, Memory, Address } from = From::Register;  // Address: itself
  std::int64_t displacement = 0;
  std::vector<std::int64_t> pointers = {};
  std::uint8_t size = 8;  // bytes
  enum class Kind : std::uint8_t { Unsigned, Signed, Pointer, Text } kind = Kind::Unsigned;

  bool operator==(const ParameterValue&) const = default;
};

class FunctionParameters {
 public:
  // `file` is open for reading. The error does not name it.
  static Result<FunctionParameters> open(format::Fd file);
  FunctionParameters(FunctionParameters&&) noexcept;
  FunctionParameters& operator=(FunctionParameters&&) = delete;
  ~FunctionParameters();

  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(format::Fd file);

  // `wanted`: "size", "request->head.length", "point.x". `symbol`: the linker's name of the function that
  // begins at `entry`. The error says which cannot be had, why, and what the function has; for "?" the last
  // alone.
  Result<std::vector<ParameterValue>> find(format::ElfAddress entry, std::string_view symbol,
                                           const std::vector<std::string>& wanted) const;

 private:
  struct State;
  explicit FunctionParameters(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Types and registers of functions' parameters and return values, to print the arguments of recorded calls.
// x86-64, and languages that follow its calling convention.

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
  static constexpr std::uint8_t kNowhere = 0xff;
  std::string name;  // empty: it has none
  ValueType type;
  // Which of the six registers for whole numbers, in the convention's order, holds all of it; kNowhere: it is
  // in memory, in several registers, or in one for floating point numbers.
  std::uint8_t word = kNowhere;
};

struct Prototype {
  std::vector<Argument> arguments;
  std::optional<ValueType> returned;  // nothing: it returns nothing, or not in the register for whole numbers
};

class FunctionPrototypes {
 public:
  // `file` is open for reading. The error does not name it.
  static Result<FunctionPrototypes> open(format::Fd file);
  FunctionPrototypes(FunctionPrototypes&&) noexcept;
  FunctionPrototypes& operator=(FunctionPrototypes&&) = delete;
  ~FunctionPrototypes();

  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(format::Fd file);

  // Of the functions that start at `entries`, in their order; nothing for functions that are not described.
  // All are looked for in one walk over the file.
  std::vector<std::optional<Prototype>> find(std::span<const format::ElfAddress> entries) const;

 private:
  struct State;
  explicit FunctionPrototypes(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
