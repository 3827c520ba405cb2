#include "report/decode/print_program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "report/decode/payload.h"

namespace tacho::report {
namespace {

// The number of `size` (1, 2, 4, 8) bytes at `offset`; one that is not wholly inside the record is zero.
std::uint64_t read(format::Bytes record, std::uint64_t offset, std::size_t size) {
  if (offset > record.size() || size > record.size() - offset) return 0;
  const std::byte* const at = record.data() + offset;
  const auto copied = [at](auto value) -> std::uint64_t {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  if (size == 8) return copied(std::uint64_t{});
  if (size == 4) return copied(std::uint32_t{});
  return size == 2 ? copied(std::uint16_t{}) : copied(std::uint8_t{});
}

std::string_view text_at(format::Bytes record, std::uint64_t offset, std::uint64_t size) {
  if (offset >= record.size()) return {};
  const format::Bytes rest = record.subspan(offset);
  return format::text_of(rest.first(std::min<std::uint64_t>(size, rest.size())));
}

// The argument converted to the C type of that length modifier (Piece::shorter).
std::int64_t as_argument(std::uint64_t value, std::int8_t shorter) {
  if (shorter == 0) return static_cast<std::int32_t>(value);
  if (shorter == -1) return static_cast<std::int16_t>(value);
  if (shorter == -2) return static_cast<std::int8_t>(value);
  return static_cast<std::int64_t>(value);
}

// An unsigned conversion takes the argument, which was widened to an int at least, at the width it names.
std::uint64_t as_unsigned(std::uint64_t value, std::int8_t shorter) {
  static constexpr std::uint64_t kMasks[] = {0xff, 0xffff, 0xffffffff, ~std::uint64_t{0}, ~std::uint64_t{0}};
  return static_cast<std::uint64_t>(as_argument(value, shorter)) & kMasks[shorter + 2];
}

// Strings of the printf kind: cut by the precision, filled by the width.
struct Shape {
  std::size_t width = 0;
  std::int32_t precision = -1;
  bool is_left = false;
};
void write_text(TextBuffer& out, std::string_view text, const Shape& shape) {
  if (shape.precision >= 0) text = text.substr(0, static_cast<std::size_t>(shape.precision));
  if (shape.is_left) return out.left(text, shape.width);
  out.padded(text, shape.width);
}

}  // namespace

std::uint64_t PrintProgram::value_of(std::uint32_t number, format::Bytes record) const {
  const Node& node = nodes_[number];
  if (node.op == Op::Constant) return node.value;
  if (node.op == Op::Field) return read(record, node.value, node.size);
  const std::uint64_t left = value_of(node.left, record);
  if (node.op == Op::Choose) return value_of(left != 0 ? node.right : node.third, record);
  if (node.op == Op::Cast) return left & ((std::uint64_t{1} << (node.size * 8)) - 1);
  const std::uint64_t right = value_of(node.right, record);
  switch (node.op) {
    case Op::Not:
      return right == 0 ? 1 : 0;
    case Op::Invert:
      return ~right;
    case Op::LogicalOr:
      return left != 0 || right != 0 ? 1 : 0;
    case Op::LogicalAnd:
      return left != 0 && right != 0 ? 1 : 0;
    case Op::Or:
      return left | right;
    case Op::And:
      return left & right;
    case Op::Equal:
      return left == right ? 1 : 0;
    case Op::Unequal:
      return left != right ? 1 : 0;
    case Op::Less:
      return left < right ? 1 : 0;
    case Op::LessEqual:
      return left <= right ? 1 : 0;
    case Op::Greater:
      return left > right ? 1 : 0;
    case Op::GreaterEqual:
      return left >= right ? 1 : 0;
    case Op::ShiftLeft:
      return left << right;
    case Op::ShiftRight:
      return left >> right;
    case Op::Add:
      return left + right;
    case Op::Subtract:
      return left - right;
    case Op::Multiply:
      return left * right;
    case Op::Divide:
      return left / right;
    default:
      return 0;
  }
}

void PrintProgram::write_number(TextBuffer& out, const Piece& piece, std::uint64_t value) const {
  const std::int64_t number = as_argument(value, piece.shorter);
  const bool is_signed = piece.conversion == 'd' || piece.conversion == 'i';
  const std::uint64_t bits = as_unsigned(value, piece.shorter);
  const bool is_usual = !piece.is_left && !piece.is_alternate;
  if (is_signed && is_usual && !piece.is_zero_filled) return out.signed_decimal(number, piece.width);
  if (piece.conversion == 'u' && is_usual) {
    return piece.is_zero_filled ? out.zero_filled(bits, piece.width) : out.decimal(bits, piece.width);
  }
  if (piece.conversion == 'x' && is_usual && !piece.is_zero_filled) return out.hex(bits, piece.width);

  std::array<char, 32> digits;
  std::size_t begin = digits.size();
  const std::uint64_t magnitude = is_signed && number < 0 ? 0 - static_cast<std::uint64_t>(number)
                                  : is_signed             ? static_cast<std::uint64_t>(number)
                                                          : bits;
  const char conversion = piece.conversion;
  const unsigned base = conversion == 'o' ? 8 : conversion == 'x' || conversion == 'X' ? 16 : 10;
  const char* const alphabet = conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::uint64_t rest = magnitude;
  do {
    digits[--begin] = alphabet[rest % base];
    rest /= base;
  } while (rest != 0);
  std::string_view sign = is_signed && number < 0 ? "-" : "";
  if (piece.is_alternate && magnitude != 0 && base == 16) sign = conversion == 'X' ? "0X" : "0x";
  if (piece.is_alternate && magnitude != 0 && base == 8) sign = "0";
  const std::size_t length = sign.size() + digits.size() - begin;
  const std::size_t filling = length < piece.width ? piece.width - length : 0;
  if (!piece.is_left && !piece.is_zero_filled) out.blanks(filling);
  out.text(sign);
  if (piece.is_zero_filled) out.fill('0', filling);
  out.text({digits.data() + begin, digits.size() - begin});
  if (piece.is_left) out.blanks(filling);
}

// "A|B", with the bits that have no name as a number.
void PrintProgram::write_flags(TextBuffer& out, const Piece& piece, std::uint64_t value) const {
  const Shape shape{piece.width, piece.precision, piece.is_left};
  bool is_first = true;
  for (const Name& name : piece.names) {
    if (value == 0 && name.value < 0) return write_text(out, name.text, shape);
    const auto bits = static_cast<std::uint64_t>(name.value);
    if (name.value <= 0 || (value & bits) != bits) continue;
    if (!is_first) out.text(piece.text);
    write_text(out, name.text, shape);
    is_first = false;
    value &= ~bits;
  }
  if (value == 0) return;
  if (!is_first) out.text(piece.text);
  out.text("0x");
  out.hex(value);
}

void PrintProgram::write_symbol(TextBuffer& out, const Piece& piece, std::uint64_t value) const {
  for (const Name& name : piece.names) {
    if (value == static_cast<std::uint64_t>(name.value))
      return write_text(out, name.text, {piece.width, piece.precision, piece.is_left});
  }
  out.text("0x");
  out.hex(value);
}

void PrintProgram::write(TextBuffer& out, const Piece& piece, format::Bytes record) const {
  Shape shape{piece.width, piece.precision, piece.is_left};
  if (piece.is_precision_a_node)
    shape.precision = static_cast<std::int32_t>(value_of(piece.precision_node, record));
  switch (piece.source) {
    case Source::Literal:
      return piece.is_precision_a_node ? write_text(out, piece.text, shape) : out.text(piece.text);
    case Source::Number:
      return write_number(out, piece, value_of(piece.node, record));
    case Source::Field:
      return write_text(out, text_at(record, piece.offset, piece.size), shape);
    case Source::Located: {
      const std::uint64_t location = read(record, piece.offset, 4), length = location >> 16;
      const std::uint64_t offset = (location & 0xffff) + (piece.is_relative ? piece.offset + piece.size : 0);
      if (length == 0 || offset + length > record.size()) return;
      return write_text(out, text_at(record, offset, kLargestRecord), shape);
    }
    case Source::Pointed: {  // the library, too, shapes neither
      std::uint64_t address = 0;
      const std::size_t there = record.size() - std::min<std::size_t>(piece.offset, record.size());
      if (there != 0) std::memcpy(&address, record.last(there).data(), std::min(there, sizeof address));
      if (const std::string* const text = strings_->find(address)) return out.text(*text);
      return out.hex(address);
    }
    case Source::Flags:
      return write_flags(out, piece, value_of(piece.node, record));
    case Source::Symbol:
      return write_symbol(out, piece, value_of(piece.node, record));
    case Source::Choice:
      return write(out, pieces_[value_of(piece.node, record) != 0 ? piece.yes : piece.no], record);
  }
}

void PrintProgram::run(TextBuffer& out, format::Bytes record) const {
  for (const Step& step : line_) {
    switch (step.kind) {
      case Step::Kind::Text:
        out.short_text(step.text, step.size);
        break;
      case Step::Kind::Signed:
        out.signed_decimal(as_argument(read(record, step.at, step.size), step.shorter), step.width);
        break;
      case Step::Kind::Unsigned:
        out.decimal(as_unsigned(read(record, step.at, step.size), step.shorter), step.width);
        break;
      case Step::Kind::Hex:
        out.hex(as_unsigned(read(record, step.at, step.size), step.shorter), step.width);
        break;
      case Step::Kind::Any:
        write(out, pieces_[step.at], record);
    }
  }
}

}  // namespace tacho::report
