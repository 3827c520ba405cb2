// Finds the parameters of a function by name, and where their values are at its entry, for probes with
// arguments. x86-64.
//
// DW_AT_location at the first instruction is used if it is valid there. Where it is missing, or is the place
// to which the function copies the value later, the calling convention and the declared types decide: for
// functions with external linkage, in languages that follow the convention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/address.h"
#include "symbolize/elf/shared_part.h"

namespace tacho::symbolize {

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

  std::optional<SharedPart> shared_part() const;
  Result<> use_shared_part(format::Fd file);

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

}  // namespace tacho::symbolize
