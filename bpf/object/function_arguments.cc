#include "bpf/object/function_arguments.h"

#include <bpf/btf.h>
#include <linux/bpf.h>
#include <linux/btf.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bpf/object/probe_program.h"
#include "bpf/support/libbpf_log.h"

namespace tacho::bpf {

namespace {

FunctionArgument argument_of_param(const btf* types, const btf_param& param) {
  FunctionArgument out;
  const char* const name = btf__name_by_offset(types, param.name_off);
  out.name = name == nullptr ? "" : name;
  const int id = btf__resolve_type(types, param.type);  // behind typedefs and const
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
  const std::unique_ptr<btf, void (*)(btf*)> types(btf__load_vmlinux_btf(), btf__free);
  if (types == nullptr)
    return Error{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which names the arguments of its functions",
                 ENOENT};
  const std::string name(function);
  const int id = btf__find_by_name_kind(types.get(), name.c_str(), BTF_KIND_FUNC);
  if (id < 0) return Error{"the kernel's BTF has no arguments of " + name, ENOENT};
  const btf_type* const found = btf__type_by_id(types.get(), static_cast<std::uint32_t>(id));
  const btf_type* const prototype = found == nullptr ? nullptr : btf__type_by_id(types.get(), found->type);
  if (prototype == nullptr || !btf_is_func_proto(prototype))
    return Error{"the kernel's BTF has no arguments of " + name, ENOENT};
  std::vector<FunctionArgument> arguments;
  const btf_param* const params = btf_params(prototype);
  std::size_t next = 1;
  for (std::uint16_t i = 0; i < btf_vlen(prototype); ++i) {
    arguments.push_back(argument_of_param(types.get(), params[i]));
    arguments.back().number = next;
    next += registers_of(types.get(), params[i].type,
                         next > kRegisterArguments ? 0 : kRegisterArguments + 1 - next);
  }
  return arguments;
}

namespace {

struct Instruction {
  std::uint8_t code = 0, to = 0, from = 0;
  std::int16_t offset = 0;
  std::int32_t immediate = 0;

  unsigned kind() const { return BPF_CLASS(code); }
  unsigned operation() const { return BPF_OP(code); }
};

constexpr unsigned kReturned = 0;     // the register whose value is returned
constexpr unsigned kJump32 = 6;       // BPF_JMP32; older headers lack it
constexpr unsigned kAtomic = 0xc0;    // BPF_ATOMIC
constexpr unsigned kTailCall = 0xf0;  // how the kernel writes a tail call in a program that is loaded
constexpr std::int32_t kTailCallFunction = 12;

std::vector<Instruction> decode(format::Bytes bytes) {
  std::vector<Instruction> program;
  for (format::Cursor in(bytes); in.left() >= sizeof(bpf_insn);) {
    Instruction& one = program.emplace_back();
    one.code = in.u8();
    const std::uint8_t registers = in.u8();
    constexpr bool kLittle = std::endian::native == std::endian::little;
    const auto low = static_cast<std::uint8_t>(registers & 15U);
    const auto high = static_cast<std::uint8_t>(registers >> 4U);
    one.to = kLittle ? low : high;
    one.from = kLittle ? high : low;
    one.offset = static_cast<std::int16_t>(in.u16());
    one.immediate = static_cast<std::int32_t>(in.u32());
  }
  return program;
}

// Whether the lowest bit of the returned register may be 0 behind this instruction; `before`: in front of it.
bool may_be_even_after(const Instruction& one, bool before) {
  switch (one.kind()) {
    case BPF_ALU:
    case BPF_ALU64:
      if (one.to != kReturned) return before;
      if (one.operation() == BPF_MOV && BPF_SRC(one.code) == BPF_K) return (one.immediate & 1) == 0;
      return true;
    case BPF_LD:  // of a constant of 64 bits, or of a packet, which goes into the returned register always
      return one.code != (BPF_LD | BPF_IMM | BPF_DW) || one.to == kReturned || before;
    case BPF_LDX:
      return one.to == kReturned || before;
    case BPF_STX:  // some atomic operations give the old value back
      return BPF_MODE(one.code) == kAtomic || before;
    case BPF_JMP:
      return one.operation() == BPF_CALL || before;
    default:
      return before;
  }
}

// Walks every way through the program; each instruction is looked at twice at most.
class Walk {
 public:
  explicit Walk(format::Bytes bytes) : program_(decode(bytes)), seen_(program_.size(), kNever) {}

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
  enum Seen : std::uint8_t { kNever, kOdd, kMaybeEven };

  void go_to(std::int64_t at, bool may_be_even) {
    if (at < 0 || at >= static_cast<std::int64_t>(program_.size())) {
      ends_even_ = true;  // no program that the kernel takes: nothing can be said
      return;
    }
    Seen& seen = seen_[static_cast<std::size_t>(at)];
    const Seen now = may_be_even ? kMaybeEven : kOdd;
    if (now <= seen) return;
    seen = now;
    open_.push_back(static_cast<std::size_t>(at));
  }

  void step(std::size_t index, bool before) {
    const Instruction& one = program_[index];
    const auto at = static_cast<std::int64_t>(index);
    const bool is_jump = one.kind() == BPF_JMP || one.kind() == kJump32;
    const bool is_tail_call =
        one.kind() == BPF_JMP &&
        (one.operation() == kTailCall ||
         (one.operation() == BPF_CALL && one.from == 0 && one.immediate == kTailCallFunction));
    if (is_tail_call || (is_jump && one.operation() == BPF_EXIT)) {
      ends_even_ |= is_tail_call || before;  // what the other program returns is not known
      if (!is_tail_call) return;
    }
    const bool after = may_be_even_after(one, before);
    if (is_jump && one.operation() == BPF_JA) {
      go_to(at + 1 + (one.kind() == kJump32 ? one.immediate : one.offset), after);
      return;
    }
    const bool is_conditional = is_jump && one.operation() != BPF_CALL && !is_tail_call;
    if (is_conditional) go_to(at + 1 + one.offset, after);
    const bool is_double = one.code == (BPF_LD | BPF_IMM | BPF_DW);
    go_to(at + (is_double ? 2 : 1), after);
  }

  std::vector<Instruction> program_;
  std::vector<Seen> seen_;
  std::vector<std::size_t> open_;
  bool ends_even_ = false;
};

}  // namespace

bool may_drop_events(format::Bytes instructions) { return Walk(instructions).may_end_even(); }

}  // namespace tacho::bpf
