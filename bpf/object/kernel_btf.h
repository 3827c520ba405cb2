// What the kernel's BTF says: arguments of functions and tracepoints, and members of structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/programs/recorders/member_places.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

struct btf;  // libbpf's

namespace tacho::bpf {

// Arguments of kernel functions from BTF, and return values of programs on tracepoints from their
// instructions.

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

// Structs of the kernel's BTF: members by path, and functions that take a pointer to them.

struct TakingFunction {
  std::string name;
  std::uint8_t argument = 1;  // the first such pointer: of its register among those for arguments, from 1 on
};

struct ObjectMember {
  tacho_member_place place;
  format::PayloadField field;  // with no place in a payload yet
};

class ObjectTypes {
 public:
  // Of the running kernel and its modules. An error where it has no BTF.
  static Result<ObjectTypes> of_this_kernel();
  // Of the bytes of one BTF.
  static Result<ObjectTypes> of(format::Bytes bytes);

  // The functions that take a pointer to `type` in a register. `type`: "struct bio", "union name", or a
  // typedef's name; the word struct may be left out. Error (Fault::Use): there is no such type or no such
  // function. Names that stand for functions with different prototypes are left out.
  Result<std::vector<TakingFunction>> functions_taking(std::string_view type) const;
  // `path`: "bi_opf", "bi_iter.bi_sector", "bi_bdev.bd_dev" or "bi_bdev->bd_dev" (a pointer is followed).
  // Only numbers of 1 to 8 bytes. A use error names the members that there are.
  Result<ObjectMember> member(std::string_view type, std::string_view path) const;

 private:
  struct Close {
    void operator()(btf* types) const noexcept;
  };
  using Types = std::unique_ptr<btf, Close>;
  // The kernel's own first, as the others refer to it: destroyed last.
  struct All;
  explicit ObjectTypes(std::shared_ptr<const All> all) : all_(std::move(all)) {}
  std::shared_ptr<const All> all_;
};

}  // namespace tacho::bpf
