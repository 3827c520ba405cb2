#include "symbolize/unwind/dwarf_expression.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "unwind/leb128.h"

namespace tacho::symbolize {

using unwind::read_sleb128;
using unwind::read_uleb128;
namespace {

constexpr int kMostSteps = 1000;      // compilers write fewer than ten; ends loops
constexpr std::size_t kDeepest = 64;  // values on the stack

enum Op : std::uint8_t {
  kAddr = 0x03,
  kDeref = 0x06,
  kDup = 0x12,
  kDrop = 0x13,
  kOver = 0x14,
  kPick = 0x15,
  kSwap = 0x16,
  kRot = 0x17,
  kAbs = 0x19,
  kNeg = 0x1f,
  kNot = 0x20,
  kPlusUconst = 0x23,
  kBra = 0x28,
  kSkip = 0x2f,
  kLit0 = 0x30,
  kReg0 = 0x50,
  kBreg0 = 0x70,
  kRegx = 0x90,
  kBregx = 0x92,
  kDerefSize = 0x94,
  kNop = 0x96,
};
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
    {kAddr, number<std::uint64_t, std::uint64_t>},
    {0x08, number<std::uint8_t, std::uint8_t>},
    {0x09, number<std::uint8_t, std::int8_t>},
    {0x0a, number<std::uint16_t, std::uint16_t>},
    {0x0b, number<std::uint16_t, std::int16_t>},
    {0x0c, number<std::uint32_t, std::uint32_t>},
    {0x0d, number<std::uint32_t, std::int32_t>},
    {0x0e, number<std::uint64_t, std::uint64_t>},
    {0x0f, number<std::uint64_t, std::int64_t>},
    {0x10, [](format::Cursor& in) { return read_uleb128(in); }},
    {0x11, [](format::Cursor& in) { return static_cast<std::uint64_t>(read_sleb128(in)); }},
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
    {0x1a, [](std::uint64_t a, std::uint64_t b) { return a & b; }},
    {0x1b, divided},
    {0x1c, [](std::uint64_t a, std::uint64_t b) { return a - b; }},
    {0x1d, [](std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : a % b; }},
    {0x1e, [](std::uint64_t a, std::uint64_t b) { return a * b; }},
    {0x21, [](std::uint64_t a, std::uint64_t b) { return a | b; }},
    {0x22, [](std::uint64_t a, std::uint64_t b) { return a + b; }},
    {0x24, [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a << b : 0; }},
    {0x25, [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a >> b : 0; }},
    {0x26,
     [](std::uint64_t a, std::uint64_t b) {
       return static_cast<std::uint64_t>(signed_of(a) >> std::min<std::uint64_t>(b, 63));
     }},
    {0x27, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }},
    {0x29, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{a == b}; }},
    {0x2a, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) >= signed_of(b)}; }},
    {0x2b, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) > signed_of(b)}; }},
    {0x2c, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) <= signed_of(b)}; }},
    {0x2d, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{signed_of(a) < signed_of(b)}; }},
    {0x2e, [](std::uint64_t a, std::uint64_t b) { return std::uint64_t{a != b}; }},
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
      if (is_in_group(op, kReg0)) return ExpressionResult{std::uint64_t{op} - kReg0, true};
      if (op == kRegx) {
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
    if (is_in_group(op, kLit0)) return stack_.push(std::uint64_t{op} - kLit0);
    if (is_in_group(op, kBreg0)) return push_register(std::uint64_t{op} - kBreg0);
    if (const auto row = std::ranges::find(kConstants, op, &Constant::op); row != std::end(kConstants))
      return stack_.push(row->read(in_));
    if (const auto row = std::ranges::find(kBinaries, op, &Binary::op); row != std::end(kBinaries)) {
      const std::uint64_t top = stack_.pop();
      return stack_.push(row->apply(stack_.pop(), top));
    }
    arrange(op);
  }

  void push_register(std::uint64_t name) {
    const auto offset = static_cast<std::uint64_t>(read_sleb128(in_));
    const auto value = frame_.register_value(name);
    if (!value) return stack_.fail();
    stack_.push(*value + offset);
  }

  // The other operations.
  void arrange(std::uint8_t op) {
    switch (op) {
      case kDeref:
        return stack_.push(frame_.memory(stack_.pop()));
      case kDerefSize:
        return push_part(in_.u8());
      case kBregx:
        return push_register(read_uleb128(in_));
      case kDup:
        return stack_.push(stack_.pick(0));
      case kOver:
        return stack_.push(stack_.pick(1));
      case kPick:
        return stack_.push(stack_.pick(in_.u8()));
      case kDrop:
        stack_.pop();
        return;
      case kSwap:
        return rotate(2);
      case kRot:
        return rotate(3);
      case kAbs: {
        const std::uint64_t value = stack_.pop();
        return stack_.push(signed_of(value) < 0 ? 0 - value : value);
      }
      case kNeg:
        return stack_.push(0 - stack_.pop());
      case kNot:
        return stack_.push(~stack_.pop());
      case kPlusUconst:
        return stack_.push(stack_.pop() + read_uleb128(in_));
      case kSkip:
        return jump(in_.u16());
      case kBra: {
        const std::uint16_t distance = in_.u16();
        if (stack_.pop() != 0) jump(distance);
        return;
      }
      case kNop:
        return;
      default:
        return stack_.fail();  // not valid in call frame information
    }
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
