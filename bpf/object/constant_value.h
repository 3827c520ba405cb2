// Values for the `const volatile` globals of an object, as text: by name and by the type that BTF gives them.
// Pure: texts and descriptions in, bytes out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bpf/object/btf_schema.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

// Why a value cannot be set, and which part of "NAME=VALUE" is to blame.
struct ConstantFault {
  enum class Part { Name, Value } part = Part::Name;
  std::size_t at = 0;  // letters into that part
  std::string what;
  std::vector<std::string> known{};  // the names there are, where there is none of that name
};

// "u32", "s64", "char[16]", "bool", "enum", "u16[4]".
std::string type_in_words(const format::PayloadField& field);
// The settable globals with their types, for messages: "min_bytes (u32), limits.low (s64)".
std::string constants_in_words(const std::vector<Global>& globals);
// The same for an embedded recorder: only globals with HELP().
ConstantFault no_such_option(std::vector<Global> globals);

// Which variable `name` is in: "limits" for "limits.low" and "limits[2].low".
std::string_view variable_of(std::string_view name);

// Writes `value` at `name` ("min_bytes", "limits.low", "ports[2]", or all of "ports" as "80:443") into the
// bytes of its variable. No value: true, for a bool. Changes nothing when there is a fault.
std::optional<ConstantFault> put_constant(const Global& global, std::string_view name,
                                          std::optional<std::string_view> value, std::span<std::byte> bytes);

}  // namespace tacho::bpf
