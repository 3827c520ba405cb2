// The parameters of a function by name, and where their values are when it begins: what a probe there reads.
// x86-64.
//
// The compiler's own word on it comes first (DW_AT_location at the first instruction). Where that names the
// place that the function will copy the value to, or nothing, the calling convention and the declared types
// tell: for functions that others can call, and in languages that follow it.
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

// How to come to a value: the register's bits from `shift` on; or memory, `displacement` bytes from where the
// register points, or from where the last of `pointers` points: each is `pointers[i]` bytes from there, and
// holds an address.
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
