// Structs of the kernel's BTF: members by path, and functions that take a pointer to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/programs/recorders/member_places.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

struct btf;

namespace tacho::bpf {

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
