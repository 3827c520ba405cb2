#include "bpf/return_value.h"

#include <linux/bpf.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tacho::bpf {
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
      ends_even_ = true;  // no program that the kernel takes: nothing can be told
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
