// The arguments of the kernel's functions, as its BTF names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

struct btf;

namespace tacho::bpf {

struct FunctionArgument {
  std::string name;
  std::uint8_t size = 8;  // bytes; 0: it is passed in no single register
  bool is_signed = false, is_pointer = false;
  // Of its register among those for arguments, from 1 on; a struct by value takes one, two or none of them.
  std::size_t number = 1;
};

// In their order. An error where the kernel has no BTF, or the function is not in it (as of a module).
Result<std::vector<FunctionArgument>> kernel_function_arguments(std::string_view function);

// How many registers an argument of that type takes when `left` are left (System V, x86-64).
std::size_t registers_of(const btf* types, std::uint32_t type_id, std::size_t left);

}  // namespace tacho::bpf
