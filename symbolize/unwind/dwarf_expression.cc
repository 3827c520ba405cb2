#include "symbolize/unwind/dwarf_expression.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "unwind/leb128.h"

namespace tacho::symbolize {
namespace {

using unwind::read_sleb128;
using unwind::read_uleb128;

constexpr int kMostSteps = 1000;      // compilers write fewer than ten; ends loops
constexpr std::size_t kDeepest = 64;  // values on the stack

constexpr std::uint8_t kGroup = 32;  // lit, reg and breg: one operation for each of 32 numbers

bool is_in_group(std::uint8_t op, std::uint8_t first) { return op >= first && op - first < kGroup; }

// An operation that pushes its operand.
struct Constant {
  std::uint8_t op;
  std::uint64_t (*read)(format::Cursor&);
};
template <class Unsigned, class As>
std::uint64_t number(format::Cursor& in) {
  return static_cast<std::uint64_t>(static_cast<As>(in.read<Unsigned>()));
}
constexpr Constant kConstants[] = {
    {DW_OP_addr, number<std::uint64_t, std::uint64_t>},
    {DW_OP_const1u, number<std::uint8_t, std::uint8_t>},
    {DW_OP_const1s, number<std::uint8_t, std::int8_t>},
    {DW_OP_const2u, number<std::uint16_t, std::uint16_t>},
    {DW_OP_const2s, number<std::uint16_t, std::int16_t>},
    {DW_OP_const4u, number<std::uint32_t, std::uint32_t>},
    {DW_OP_const4s, number<std::uint32_t, std::int32_t>},
    {DW_OP_const8u, number<std::uint64_t, std::uint64_t>},
    {DW_OP_const8s, number<std::uint64_t, std::int64_t>},
    {DW_OP_constu, [](format::Cursor& in) { return read_uleb128(in); }},
    {DW_OP_consts, [](format::Cursor& in) { return static_cast<std::uint64_t>(read_sleb128(in)); }},
};

// An operation on the two topmost values; `top` was pushed last.
struct Binary {
  std::uint8_t op;
  std::uint64_t (*apply)(std::uint64_t below, std::uint64_t top);
};
std::int64_t signed_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t divided(std::uint64_t below, std::uint64_t top) {
  const std::int64_t divisor = signed_of(top);
  if (divisor == 0) return 0;
  if (divisor == -1) return 0 - below;  // INT64_MIN / -1 overflows
  return static_cast<std::uint64_t>(signed_of(below) / divisor);
}
constexpr Binary kBinaries[] = {
    {DW_OP_and, [](std::uint64_t a, std::uint64_t b) { return a & b; }},
    {DW_OP_div, divided},
    {DW_OP_minus, [](std::uint64_t a, std::uint64_t b) { return a - b; }},
    {DW_OP_mod, [](std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : a % b; }},
    {DW_OP_mul, [](std::uint64_t a, std::uint64_t b) { return a * b; }},
    {DW_OP_or, [](std::uint64_t a, std::uint64_t b) { return a | b; }},
    {DW_OP_plus, [](std::uint64_t a, std::uint64_t b) { return a + b; }},
    {DW_OP_shl, [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a << b : 0; }},
    {DW_OP_shr, [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a >> b : 0; }},
    {DW_OP_shra,
     [](std::uint64_t a, std::uint64_t b) {
       return static_cast<std::uint64_t>(signed_of(a) >> std::min<std::uint64_t>(b, 63));
     }},
    {DW_OP_xor, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }},
    {DW_OP_eq, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{a == b}; }},
    {DW_OP_ge, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) >= signed_of(b)}; }},
    {DW_OP_gt, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) > signed_of(b)}; }},
    {DW_OP_le, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) <= signed_of(b)}; }},
    {DW_OP_lt, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) < signed_of(b)}; }},
    {DW_OP_ne, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{a != b}; }},
};

// The stack of values. An overflow or underflow sets `failed`.
class Stack {
 public:
  void push(std::uint64_t value) {
    if (size_ == values_.size()) return fail();
    values_[size_++] = value;
  }
  void push(std::optional<std::uint64_t> value) { value ? push(*value) : fail(); }
  std::uint64_t pop() {
    const std::uint64_t value = pick(0);
    if (!failed_) --size_;
    return value;
  }
  std::uint64_t pick(std::uint64_t depth) {
    if (depth < size_) return values_[size_ - 1 - static_cast<std::size_t>(depth)];
    fail();
    return 0;
  }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }

 private:
  std::array<std::uint64_t, kDeepest> values_{};
  std::size_t size_ = 0;
  bool failed_ = false;
};

class Evaluation {
 public:
  Evaluation(format::Bytes expression, const ExpressionContext& frame, std::endian order)
      : all_(expression), in_(expression, order), frame_(frame) {}

  std::optional<ExpressionResult> run(std::uint64_t initial) {
    stack_.push(initial);
    for (int steps = 0; in_.left() > 0; ++steps) {
      if (steps == kMostSteps) return std::nullopt;
      const std::uint8_t op = in_.u8();
      if (is_in_group(op, DW_OP_reg0)) return ExpressionResult{std::uint64_t{op} - DW_OP_reg0, true};
      if (op == DW_OP_regx) {
        const std::uint64_t name = read_uleb128(in_);
        return in_.failed() ? std::nullopt : std::optional(ExpressionResult{name, true});
      }
      step(op);
      if (in_.failed() || stack_.failed()) return std::nullopt;
    }
    const std::uint64_t value = stack_.pop();
    return stack_.failed() ? std::nullopt : std::optional(ExpressionResult{value, false});
  }

 private:
  void step(std::uint8_t op) {
    if (is_in_group(op, DW_OP_lit0)) return stack_.push(std::uint64_t{op} - DW_OP_lit0);
    if (is_in_group(op, DW_OP_breg0)) return push_register(std::uint64_t{op} - DW_OP_breg0);
    if (const auto row = std::ranges::find(kConstants, op, &Constant::op); row != std::end(kConstants))
      return stack_.push(row->read(in_));
    if (const auto row = std::ranges::find(kBinaries, op, &Binary::op); row != std::end(kBinaries)) {
      const std::uint64_t top = stack_.pop();
      return stack_.push(row->apply(stack_.pop(), top));
    }
    switch (op) {
      case DW_OP_deref:
        return stack_.push(frame_.memory(stack_.pop()));
      case DW_OP_deref_size:
        return push_part(in_.u8());
      case DW_OP_bregx:
        return push_register(read_uleb128(in_));
      case DW_OP_dup:
        return stack_.push(stack_.pick(0));
      case DW_OP_over:
        return stack_.push(stack_.pick(1));
      case DW_OP_pick:
        return stack_.push(stack_.pick(in_.u8()));
      case DW_OP_drop:
        stack_.pop();
        return;
      case DW_OP_swap:
        return rotate(2);
      case DW_OP_rot:
        return rotate(3);
      case DW_OP_abs: {
        const std::uint64_t value = stack_.pop();
        return stack_.push(signed_of(value) < 0 ? 0 - value : value);
      }
      case DW_OP_neg:
        return stack_.push(0 - stack_.pop());
      case DW_OP_not:
        return stack_.push(~stack_.pop());
      case DW_OP_plus_uconst:
        return stack_.push(stack_.pop() + read_uleb128(in_));
      case DW_OP_skip:
        return jump(in_.u16());
      case DW_OP_bra: {
        const std::uint16_t distance = in_.u16();
        if (stack_.pop() != 0) jump(distance);
        return;
      }
      case DW_OP_nop:
        return;
      default:
        return stack_.fail();  // not valid in call frame information
    }
  }

  void push_register(std::uint64_t name) {
    const auto offset = static_cast<std::uint64_t>(read_sleb128(in_));
    const auto value = frame_.register_value(name);
    if (!value) return stack_.fail();
    stack_.push(*value + offset);
  }

  // Moves the topmost value below the next `count` - 1 values.
  void rotate(std::size_t count) {
    std::array<std::uint64_t, 3> values{};
    for (std::size_t i = 0; i < count; ++i) values[i] = stack_.pop();
    stack_.push(values[0]);
    for (std::size_t i = count - 1; i > 0; --i) stack_.push(values[i]);
  }

  void push_part(std::uint8_t size) {
    const auto word = frame_.memory(stack_.pop());
    if (!word || size == 0 || size > 8) return stack_.fail();
    const unsigned cut = 64U - 8U * size;
    stack_.push(in_.order() == std::endian::little ? *word << cut >> cut : *word >> cut);
  }

  // A relative jump, forwards or backwards.
  void jump(std::uint16_t distance) {
    const std::size_t here = all_.size() - in_.left();
    const std::int64_t to = static_cast<std::int64_t>(here) + static_cast<std::int16_t>(distance);
    if (in_.failed() || to < 0 || to > static_cast<std::int64_t>(all_.size())) return stack_.fail();
    in_ = format::Cursor(all_.subspan(static_cast<std::size_t>(to)), in_.order());
  }

  format::Bytes all_;
  format::Cursor in_;
  const ExpressionContext& frame_;
  Stack stack_;
};

}  // namespace

std::optional<ExpressionResult> evaluate_expression(format::Bytes expression, std::uint64_t initial,
                                                    const ExpressionContext& frame, std::endian order) {
  return Evaluation(expression, frame, order).run(initial);
}

}  // namespace tacho::symbolize
