#include "bpf/object/kernel_btf.h"

#include <bpf/btf.h>
#include <linux/bpf.h>
#include <linux/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "bpf/object/probe_program.h"
#include "bpf/programs/recorders/shared_constants.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"

namespace tacho::bpf {
namespace {

FunctionArgument argument_of_param(const btf* types, const btf_param& param) {
  FunctionArgument out;
  out.name = name_at(types, param.name_off);
  const int id = btf__resolve_type(types, param.type);  // without typedefs and const
  const btf_type* const type = id < 0 ? nullptr : btf__type_by_id(types, static_cast<std::uint32_t>(id));
  if (type == nullptr) return out;
  out.is_pointer = btf_is_ptr(type);
  if (out.is_pointer) return out;
  const auto size = btf__resolve_size(types, static_cast<std::uint32_t>(id));
  const bool is_number = btf_is_int(type) || btf_is_any_enum(type);
  const bool fits = size == 1 || size == 2 || size == 4 || size == 8;
  out.size = is_number && fits ? static_cast<std::uint8_t>(size) : std::uint8_t{0};
  out.is_signed = btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
  return out;
}

Result<OwnedBtf> load_vmlinux() {
  OwnedBtf types(btf__load_vmlinux_btf());
  if (types != nullptr) return types;
  return Error{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which names the arguments of its functions",
               ENOENT};
}

}  // namespace

std::size_t registers_of(const btf* types, std::uint32_t type_id, std::size_t left) {
  constexpr std::int64_t kWord = 8;
  const int id = btf__resolve_type(types, type_id);
  const btf_type* const type = id < 0 ? nullptr : btf__type_by_id(types, static_cast<std::uint32_t>(id));
  if (type == nullptr || !btf_is_composite(type)) return 1;
  const std::int64_t size = btf__resolve_size(types, static_cast<std::uint32_t>(id));
  const std::size_t words = size <= kWord ? 1 : 2;
  return size > 2 * kWord || words > left ? 0 : words;
}

Result<std::vector<FunctionArgument>> kernel_function_arguments(std::string_view function) {
  const LibbpfLog quiet;
  const auto types = load_vmlinux();
  if (!types) return types.error();
  const std::string name(function);
  const btf* const all = types->get();
  const int id = btf__find_by_name_kind(all, name.c_str(), BTF_KIND_FUNC);
  const btf_type* const found = id < 0 ? nullptr : btf__type_by_id(all, static_cast<std::uint32_t>(id));
  const btf_type* const prototype = found == nullptr ? nullptr : btf__type_by_id(all, found->type);
  if (prototype == nullptr || !btf_is_func_proto(prototype))
    return Error{"the kernel's BTF has no arguments of " + name, ENOENT};
  std::vector<FunctionArgument> arguments;
  const btf_param* const params = btf_params(prototype);
  std::size_t next = 1;
  for (std::uint16_t i = 0; i < btf_vlen(prototype); ++i) {
    arguments.push_back(argument_of_param(all, params[i]));
    arguments.back().number = next;
    next += registers_of(all, params[i].type, next > kRegisterArguments ? 0 : kRegisterArguments + 1 - next);
  }
  return arguments;
}

namespace {

constexpr unsigned kReturned = 0;     // r0, the return value
constexpr unsigned kJump32 = 6;       // BPF_JMP32; older headers lack it
constexpr unsigned kAtomic = 0xc0;    // BPF_ATOMIC
constexpr unsigned kTailCall = 0xf0;  // the opcode of a tail call in a loaded program
constexpr std::int32_t kTailCallFunction = 12;

std::vector<bpf_insn> decode(format::Bytes bytes) {
  std::vector<bpf_insn> program(bytes.size() / sizeof(bpf_insn));
  if (!program.empty()) std::memcpy(program.data(), bytes.data(), program.size() * sizeof(bpf_insn));
  return program;
}

// Whether the lowest bit of r0 may be 0 after this instruction; `before`: before it.
bool may_be_even_after(const bpf_insn& one, bool before) {
  switch (BPF_CLASS(one.code)) {
    case BPF_ALU:
    case BPF_ALU64:
      if (one.dst_reg != kReturned) return before;
      if (BPF_OP(one.code) == BPF_MOV && BPF_SRC(one.code) == BPF_K) return (one.imm & 1) == 0;
      return true;
    case BPF_LD:  // a 64-bit constant, or packet data, which always goes into r0
      return one.code != (BPF_LD | BPF_IMM | BPF_DW) || one.dst_reg == kReturned || before;
    case BPF_LDX:
      return one.dst_reg == kReturned || before;
    case BPF_STX:  // some atomic operations return the old value
      return BPF_MODE(one.code) == kAtomic || before;
    case BPF_JMP:
      return BPF_OP(one.code) == BPF_CALL || before;
    default:
      return before;
  }
}

// Follows all paths through the program; visits each instruction at most twice.
class ReturnValueCheck {
 public:
  explicit ReturnValueCheck(format::Bytes bytes) : program_(decode(bytes)), seen_(program_.size(), kUnseen) {}

  bool may_end_even() {
    go_to(0, true);
    while (!open_.empty() && !ends_even_) {
      const std::size_t at = open_.back();
      open_.pop_back();
      step(at, seen_[at] == kMaybeEven);
    }
    return ends_even_;
  }

 private:
  enum Seen : std::uint8_t { kUnseen, kOdd, kMaybeEven };

  void go_to(std::int64_t at, bool may_be_even) {
    if (at < 0 || at >= static_cast<std::int64_t>(program_.size())) {
      ends_even_ = true;  // the kernel would refuse this program: assume the worst
      return;
    }
    Seen& seen = seen_[static_cast<std::size_t>(at)];
    const Seen now = may_be_even ? kMaybeEven : kOdd;
    if (now <= seen) return;
    seen = now;
    open_.push_back(static_cast<std::size_t>(at));
  }

  void step(std::size_t index, bool before) {
    const bpf_insn& one = program_[index];
    const auto at = static_cast<std::int64_t>(index);
    const unsigned kind = BPF_CLASS(one.code), operation = BPF_OP(one.code);
    const bool is_jump = kind == BPF_JMP || kind == kJump32;
    const bool is_tail_call =
        kind == BPF_JMP && (operation == kTailCall ||
                            (operation == BPF_CALL && one.src_reg == 0 && one.imm == kTailCallFunction));
    if (is_tail_call || (is_jump && operation == BPF_EXIT)) {
      ends_even_ |= is_tail_call || before;  // the return value of the other program is unknown
      if (!is_tail_call) return;
    }
    const bool after = may_be_even_after(one, before);
    if (is_jump && operation == BPF_JA) {
      go_to(at + 1 + (kind == kJump32 ? one.imm : one.off), after);
      return;
    }
    const bool is_conditional = is_jump && operation != BPF_CALL && !is_tail_call;
    if (is_conditional) go_to(at + 1 + one.off, after);
    const bool is_double = one.code == (BPF_LD | BPF_IMM | BPF_DW);
    go_to(at + (is_double ? 2 : 1), after);
  }

  std::vector<bpf_insn> program_;
  std::vector<Seen> seen_;
  std::vector<std::size_t> open_;
  bool ends_even_ = false;
};

}  // namespace

bool may_drop_events(format::Bytes instructions) { return ReturnValueCheck(instructions).may_end_even(); }

namespace {

constexpr const char* kFolder = "/sys/kernel/btf";
constexpr const char* kKernel = "vmlinux";
constexpr std::uint32_t kBitsOfByte = 8, kWordBytes = 8, kWordBits = 64;
constexpr int kMostNesting = 16;  // of anonymous structs and of typedefs
constexpr std::size_t kMostEnumerators = 256;
constexpr std::size_t kMostNamed = 12;  // members in a message

// "struct bio", "bio".
struct WantedType {
  std::string name;
  bool is_struct = false, is_union = false;  // has that keyword

  explicit WantedType(std::string_view text) {
    is_struct = text.starts_with("struct ");
    is_union = text.starts_with("union ");
    if (is_struct || is_union) text.remove_prefix(text.find(' ') + 1);
    while (text.ends_with(' ') || text.ends_with('*')) text.remove_suffix(1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    name = text;
  }
  bool is(const btf* types, const btf_type* type) const {
    const bool is_kind = btf_is_struct(type) || btf_is_fwd(type) ? !is_union
                         : btf_is_union(type)                    ? !is_struct
                         : btf_is_typedef(type)                  ? !is_struct && !is_union
                                                                 : false;
    return is_kind && name_at(types, type->name_off) == name;
  }
};

bool is_pointer_to(const btf* types, std::uint32_t id, const WantedType& wanted) {
  const btf_type* const pointer = plain_type(types, id);
  if (pointer == nullptr || !btf_is_ptr(pointer)) return false;
  const btf_type* type = btf__type_by_id(types, pointer->type);
  for (int i = 0; i < kMostNesting && type != nullptr; ++i) {
    if (wanted.is(types, type)) return true;
    if (!btf_is_typedef(type) && !btf_is_mod(type) && !btf_is_type_tag(type)) return false;
    type = btf__type_by_id(types, type->type);
  }
  return false;
}

// The register of the function's first pointer to that type; nothing: none is in a register.
std::optional<std::uint8_t> argument_of(const btf* types, const btf_type* function,
                                        const WantedType& wanted) {
  const btf_type* const prototype = btf__type_by_id(types, function->type);
  if (prototype == nullptr || !btf_is_func_proto(prototype)) return std::nullopt;
  const btf_param* const params = btf_params(prototype);
  std::size_t next = 1;
  for (std::uint16_t i = 0; i < btf_vlen(prototype) && next <= TACHO_MOST_ARGUMENTS; ++i) {
    if (is_pointer_to(types, params[i].type, wanted)) return static_cast<std::uint8_t>(next);
    next += registers_of(types, params[i].type, kRegisterArguments + 1 - next);
  }
  return std::nullopt;
}

const btf_type* find_type(const btf* types, const WantedType& wanted) {
  const btf_type* other = nullptr;  // a typedef, or a forward declaration
  for (std::uint32_t id = 1; id < btf__type_cnt(types); ++id) {
    const btf_type* const type = btf__type_by_id(types, id);
    if (type == nullptr || !wanted.is(types, type)) continue;
    if (btf_is_composite(type)) return type;
    if (const btf_type* const target = plain_type(types, id); target != nullptr && btf_is_composite(target))
      other = target;
  }
  return other;
}

void add_names(const btf* types, const btf_type* owner, std::vector<std::string>& names, int nesting = 0) {
  if (owner == nullptr || !btf_is_composite(owner) || nesting > kMostNesting) return;
  for (std::uint32_t i = 0; i < btf_vlen(owner) && names.size() <= kMostNamed; ++i) {
    const btf_member& member = btf_members(owner)[i];
    const std::string_view own = name_at(types, member.name_off);
    if (own.empty())
      add_names(types, plain_type(types, member.type), names, nesting + 1);
    else
      names.emplace_back(own);
  }
}

std::string members_in_words(const btf* types, const btf_type* owner) {
  std::vector<std::string> names;
  add_names(types, owner, names);
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    out += (out.empty() ? "" : ", ") + names[i];
  return names.size() > kMostNamed ? out + ", ..." : out;
}

void add_enumerators(const btf* types, const btf_type* type, format::PayloadField& field) {
  const bool is_wide = btf_is_enum64(type);
  field.kind = format::FieldKind::Enum;
  field.is_signed = btf_kflag(type);
  // Older compilers do not mark signed enums: a negative value shows it.
  for (std::uint32_t i = 0; !is_wide && i < btf_vlen(type); ++i) field.is_signed |= btf_enum(type)[i].val < 0;
  if (btf_vlen(type) > kMostEnumerators) return;
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const auto value = is_wide ? static_cast<std::int64_t>(btf_enum64_value(&btf_enum64(type)[i]))
                               : std::int64_t{btf_enum(type)[i].val};
    const std::uint32_t name = is_wide ? btf_enum64(type)[i].name_off : btf_enum(type)[i].name_off;
    field.enumerators.emplace_back(value, name_at(types, name));
  }
}

// The last member of a path as a field, with its bit offset; nothing if it is not a number.
std::optional<ObjectMember> number_at(const btf* types, const BtfMember& found, ObjectMember member) {
  const btf_type* const type = plain_type(types, found.type);
  if (type == nullptr) return std::nullopt;
  const bool is_enum = btf_is_any_enum(type), is_pointer = btf_is_ptr(type);
  if (!is_enum && !is_pointer && !btf_is_int(type)) return std::nullopt;
  const std::uint32_t size = is_pointer ? kWordBytes : type->size;
  const std::uint32_t bits = found.bits == 0 ? size * kBitsOfByte : found.bits;
  const std::uint32_t shift = found.bit % kBitsOfByte;
  if (bits == 0 || shift + bits > kWordBits) return std::nullopt;
  format::PayloadField& field = member.field;
  field.bit_size = kWordBits;
  if (is_pointer) field.format = "hex";
  if (btf_is_int(type) && (btf_int_encoding(type) & BTF_INT_SIGNED) != 0) field.is_signed = true;
  if (btf_is_int(type) && (btf_int_encoding(type) & BTF_INT_BOOL) != 0)
    field.kind = format::FieldKind::Bool;
  else if (field.is_signed)
    field.kind = format::FieldKind::Signed;
  if (is_enum) add_enumerators(types, type, field);
  member.location.at[member.location.pointers] = found.bit / kBitsOfByte;
  member.location.bytes = (shift + bits + kBitsOfByte - 1) / kBitsOfByte;
  member.location.left = kWordBits - shift - bits;
  member.location.right = kWordBits - bits;
  member.location.is_signed = field.is_signed ? 1 : 0;
  return member;
}

// Removes the next name from the front of a path; it may be empty ("a..b").
std::string_view next_name(std::string_view& path) {
  const std::size_t dot = path.find('.'), arrow = path.find("->"), end = std::min(dot, arrow);
  const std::string_view name = path.substr(0, end);
  path = end == std::string_view::npos ? std::string_view() : path.substr(end + (end == arrow ? 2 : 1));
  return name;
}

Result<ObjectMember> member_of(const btf* types, const btf_type* owner, std::string_view type,
                               std::string_view path) {
  ObjectMember member{};
  member.field.name = path;
  std::uint32_t before = 0;  // bit offset of the structs around the member
  std::string owner_name(type);
  for (std::string_view rest = path;;) {
    const std::string name(next_name(rest));
    auto found = name.empty() ? std::nullopt : find_member(types, owner, name);
    if (!found)
      return use_error(owner_name + " has no member '" + name +
                       "'; it has: " + members_in_words(types, owner));
    found->bit += before;
    if (rest.empty()) {
      auto number = number_at(types, *found, member);
      if (number) return std::move(*number);
      const btf_type* const inner = plain_type(types, found->type);
      const bool has_members = inner != nullptr && btf_is_composite(inner);
      return use_error(std::string(path) + " is not a number of 1 to 8 bytes" +
                       (has_members ? "; its members are: " + members_in_words(types, inner) : ""));
    }
    before = found->bit;
    owner = plain_type(types, found->type);
    if (owner != nullptr && btf_is_ptr(owner)) {
      if (member.location.pointers == TACHO_MOST_POINTERS)
        return use_error(std::string(path) + ": at most " + std::to_string(TACHO_MOST_POINTERS) +
                         " pointers are followed");
      member.location.at[member.location.pointers++] = before / kBitsOfByte;
      before = 0;
      owner = plain_type(types, owner->type);
    }
    owner_name = std::string(path.substr(0, path.size() - rest.size()));
    while (owner_name.ends_with('.') || owner_name.ends_with('>') || owner_name.ends_with('-'))
      owner_name.pop_back();
    if (owner == nullptr || !btf_is_composite(owner)) return use_error(owner_name + " has no members");
  }
}

}  // namespace

struct ObjectTypes::All {
  OwnedBtf kernel;
  std::vector<OwnedBtf> modules;  // destroyed first: they refer to the kernel's types
};

Result<ObjectTypes> ObjectTypes::of_this_kernel() {
  const LibbpfLog quiet;
  auto kernel = load_vmlinux();
  if (!kernel) return std::move(kernel.error());
  auto all = std::make_shared<All>();
  all->kernel = std::move(*kernel);
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name == kKernel) continue;
    // Fails for a module that is being loaded or unloaded.
    if (OwnedBtf module(btf__load_module_btf(name.c_str(), all->kernel.get())); module != nullptr)
      all->modules.push_back(std::move(module));
  }
  return ObjectTypes(std::move(all));
}

Result<ObjectTypes> ObjectTypes::of(format::Bytes bytes) {
  const LibbpfLog quiet;
  auto all = std::make_shared<All>();
  all->kernel = parse_btf(bytes);
  if (all->kernel == nullptr) return Error{"the kernel's BTF cannot be read", EINVAL};
  return ObjectTypes(std::move(all));
}

Result<std::vector<TakingFunction>> ObjectTypes::functions_taking(std::string_view type) const {
  const WantedType wanted(type);
  std::map<std::string, std::uint8_t> found;  // 0: several prototypes
  const auto add = [&](const btf* types, std::uint32_t first) {
    for (std::uint32_t id = first; id < btf__type_cnt(types); ++id) {
      const btf_type* const function = btf__type_by_id(types, id);
      if (function == nullptr || !btf_is_func(function)) continue;
      const auto argument = argument_of(types, function, wanted);
      if (!argument) continue;
      const auto [entry, is_new] =
          found.try_emplace(std::string(name_at(types, function->name_off)), *argument);
      if (!is_new && entry->second != *argument) entry->second = 0;
    }
  };
  const btf* const kernel = all_->kernel.get();
  add(kernel, 1);
  for (const OwnedBtf& module : all_->modules) add(module.get(), btf__type_cnt(kernel));
  std::vector<TakingFunction> functions;
  for (const auto& [name, argument] : found)
    if (argument != 0 && !name.empty()) functions.push_back({name, argument});
  if (!functions.empty()) return functions;
  bool is_known = find_type(kernel, wanted) != nullptr;
  for (const OwnedBtf& module : all_->modules) is_known |= find_type(module.get(), wanted) != nullptr;
  return use_error(is_known ? "no function of the kernel takes a pointer to " + std::string(type)
                            : "the kernel's BTF has no type '" + std::string(type) + "'");
}

Result<ObjectMember> ObjectTypes::member(std::string_view type, std::string_view path) const {
  const WantedType wanted(type);
  if (const btf_type* const owner = find_type(all_->kernel.get(), wanted))
    return member_of(all_->kernel.get(), owner, type, path);
  for (const OwnedBtf& module : all_->modules)
    if (const btf_type* const owner = find_type(module.get(), wanted))
      return member_of(module.get(), owner, type, path);
  return use_error("the kernel's BTF has no members of " + std::string(type));
}

}  // namespace tacho::bpf
