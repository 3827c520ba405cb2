// What the kernel's BTF says of functions, tracepoints and structs, and what a program may return to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/programs/recorders/shared_constants.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

struct btf;  // libbpf's

namespace tacho::bpf {

// An argument of a kernel function.
struct FunctionArgument {
  std::string name;
  std::uint8_t size = 8;  // bytes; 0: it is not passed in a single register
  bool is_signed = false, is_pointer = false;
  // Number of its argument register, from 1 on; a struct by value takes one, two or none.
  std::size_t number = 1;
};

// In order. An error if the kernel has no BTF, or the function is not in it (functions of modules are not).
Result<std::vector<FunctionArgument>> kernel_function_arguments(std::string_view function);

// How many registers an argument of that type takes if `left` registers are free (x86-64, arm64).
std::size_t registers_of(const btf* types, std::uint32_t type_id, std::size_t left);

// Whether a program on a classic tracepoint may return an even value on some path; true if that is unknown.
// The kernel ANDs the return values of all programs on a tracepoint. If the lowest bit is 0, all perf events
// on the tracepoint, of all recorders, miss the hit, and no loss is counted. `instructions`: all of the
// program, 8 bytes each, in this machine's byte order.
bool may_drop_events(format::Bytes instructions);

// A function that takes a pointer to a type.
struct TakingFunction {
  std::string name;
  std::uint8_t argument = 1;  // number of the argument register of the first such pointer, from 1 on
};

struct ObjectMember {
  tacho_member_offset location;
  format::PayloadField field;  // without an offset in a payload
};

// Structs of the kernel's BTF: members by path, and functions that take a pointer to them.
class ObjectTypes {
 public:
  // The types of the running kernel and its modules. An error if it has no BTF.
  static Result<ObjectTypes> of_this_kernel();
  // The types in one BTF.
  static Result<ObjectTypes> of(format::Bytes bytes);

  // The functions that take a pointer to `type` in a register. `type`: "struct bio", "bio", "union name", or
  // a typedef's name. Error (Fault::Use): there is no such type or function. Names of several functions with
  // different prototypes are ignored.
  Result<std::vector<TakingFunction>> functions_taking(std::string_view type) const;
  // `path`: "bi_opf", "bi_iter.bi_sector", "bi_bdev.bd_dev" or "bi_bdev->bd_dev" (a pointer is followed).
  // Only numbers of 1 to 8 bytes. A use error lists the members.
  Result<ObjectMember> member(std::string_view type, std::string_view path) const;

 private:
  struct All;
  explicit ObjectTypes(std::shared_ptr<const All> all) : all_(std::move(all)) {}
  std::shared_ptr<const All> all_;
};

}  // namespace tacho::bpf
