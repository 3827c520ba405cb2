// Arguments of kernel functions from BTF, and return values of programs on tracepoints from their
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

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

// What a program on a classic tracepoint may return. The kernel joins the results of all programs on a
// tracepoint with AND, and where the lowest bit of that is 0 it drops the hit for every perf event on the
// tracepoint, of all recorders, and counts no loss. So such a program has to return 1.

// Whether some path through the program may end with an even return value, as far as its instructions show
// (8 bytes each, in this machine's byte order, from the program's first one on): true where that is not
// known.
bool may_drop_events(format::Bytes instructions);

}  // namespace tacho::bpf
