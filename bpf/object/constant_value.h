// Sets the `const volatile` globals of an object from text (NAME=VALUE), by the types in its BTF.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bpf/object/btf_schema.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

// Why a value cannot be set, and which part of "NAME=VALUE" is wrong.
struct ConstantFault {
  enum class Part { Name, Value } part = Part::Name;
  std::size_t at = 0;  // offset in that part
  std::string what;
  std::vector<std::string> known{};  // for an unknown name: the known ones
};

// "u32", "s64", "char[16]", "bool", "enum", "u16[4]".
std::string type_in_words(const format::PayloadField& field);
// The settable globals with their types, for messages: "min_bytes (u32), limits.low (s64)".
std::string constants_in_words(const std::vector<Global>& globals);
// The fault for an unknown option of an embedded recorder. Lists the globals with HELP().
ConstantFault no_such_option(std::vector<Global> globals);

// The variable of a name: "limits" for "limits.low" and "limits[2].low".
std::string_view variable_of(std::string_view name);

// Writes `value` into the bytes of the variable, at `name` ("min_bytes", "limits.low", "ports[2]", or "ports"
// with the value "80:443"). No value: true, for a bool. On a fault nothing is changed.
std::optional<ConstantFault> put_constant(const Global& global, std::string_view name,
                                          std::optional<std::string_view> value, std::span<std::byte> bytes);

}  // namespace tacho::bpf
