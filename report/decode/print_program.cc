#include "report/decode/print_program.h"

#include <traceevent/event-parse.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "report/decode/payload.h"
#include "report/output/text_output.h"

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

// The compiler of PrintProgram: translates libtraceevent's syntax tree of a print format.

namespace {

constexpr int kDeepest = 64;  // nested expressions
constexpr std::uint16_t kWidest = 999;

bool is_size(int size) { return size == 1 || size == 2 || size == 4 || size == 8; }

bool is_within_record(const tep_format_field* field) {
  return field != nullptr && field->offset >= 0 && static_cast<std::uint32_t>(field->offset) < kLargestRecord;
}

}  // namespace

// Walks the syntax tree. Each function returns nullopt for something that is not supported.
class PrintProgram::Compiler {
 public:
  Compiler(const tep_event& event, const format::ConstantStrings& strings) : event_(&event) {
    program_.strings_ = &strings;
  }

  std::optional<PrintProgram> compile() {
    const char* format = event_->print_fmt.format;
    if (format == nullptr) return std::nullopt;
    const tep_print_arg* arg = event_->print_fmt.args;
    std::string literal;
    for (const char* at = format; *at != '\0';) {
      if (*at == '\\') {
        if (at[1] == '\0') return std::nullopt;
        literal += escaped(at[1]);
        at += 2;
        continue;
      }
      if (*at != '%') {
        literal += *at++;
        continue;
      }
      if (at[1] == '%') {
        literal += '%';
        at += 2;
        continue;
      }
      Piece piece;
      const char* const end = conversion(at + 1, piece);
      if (end == nullptr || arg == nullptr) return std::nullopt;
      if (piece.is_precision_a_node) {
        const auto precision = expression(arg, 0);
        arg = arg->next;
        if (!precision || arg == nullptr) return std::nullopt;
        piece.precision_node = *precision;
      }
      add_literal(literal);
      const auto added = piece.conversion == 's' ? text(arg, piece, 0) : number(arg, piece);
      if (!added) return std::nullopt;
      program_.line_.push_back(step_for(*added));
      arg = arg->next;
      at = end;
    }
    add_literal(literal);
    program_.is_plain_ = std::ranges::all_of(program_.pieces_, shows_plain_text);
    return std::move(program_);
  }

 private:
  static bool shows_plain_text(const Piece& piece) {
    return piece.source != Source::Field && piece.source != Source::Located &&
           piece.source != Source::Pointed && report::is_plain(piece.text) &&
           std::ranges::all_of(piece.names, [](const Name& name) { return report::is_plain(name.text); });
  }
  // The character of an escape sequence in a format.
  static char escaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c; }
  void add_literal(std::string& literal) {
    if (literal.empty()) return;
    Piece piece;
    piece.text = std::move(literal);
    literal.clear();
    program_.line_.push_back(step_for(add(std::move(piece))));
  }
  // The Step that prints a piece.
  Step step_for(std::uint32_t number) const {
    const Piece& piece = program_.pieces_[number];
    Step step;
    step.at = number;
    if (piece.source == Source::Literal && piece.text.size() <= sizeof step.text) {
      step.kind = Step::Kind::Text;
      step.size = static_cast<std::uint8_t>(piece.text.copy(step.text, sizeof step.text));
    }
    const bool is_usual = !piece.is_left && !piece.is_alternate && !piece.is_zero_filled;
    if (piece.source != Source::Number || !is_usual) return step;
    const Node& node = program_.nodes_[piece.node];
    if (node.op != Op::Field || node.value > kLargestRecord) return step;
    const char conversion = piece.conversion;
    if (conversion == 'd' || conversion == 'i') step.kind = Step::Kind::Signed;
    if (conversion == 'u') step.kind = Step::Kind::Unsigned;
    if (conversion == 'x') step.kind = Step::Kind::Hex;
    if (step.kind == Step::Kind::Any) return step;
    step.size = node.size;
    step.shorter = piece.shorter;
    step.width = piece.width;
    step.at = static_cast<std::uint32_t>(node.value);
    return step;
  }
  std::uint32_t add(Piece piece) {
    program_.pieces_.push_back(std::move(piece));
    return static_cast<std::uint32_t>(program_.pieces_.size() - 1);
  }

  // "-08.3lx": returns what follows, null when it is not covered.
  static const char* conversion(const char* at, Piece& piece) {
    for (;; ++at) {
      if (*at == '-') {
        piece.is_left = true;
      } else if (*at == '0') {
        piece.is_zero_filled = true;
      } else if (*at == '#') {
        piece.is_alternate = true;
      } else {
        break;
      }
    }
    for (; *at >= '0' && *at <= '9'; ++at) {
      piece.width = static_cast<std::uint16_t>(piece.width * 10 + (*at - '0'));
      if (piece.width > kWidest) return nullptr;
    }
    if (*at == '.') {
      piece.precision = 0;
      ++at;
      if (*at == '*') {
        piece.is_precision_a_node = true;
        ++at;
      }
      for (; *at >= '0' && *at <= '9'; ++at) {
        piece.precision = piece.precision * 10 + (*at - '0');
        if (piece.precision > kWidest) return nullptr;
      }
    }
    for (; *at == 'l' || *at == 'h'; ++at)
      piece.shorter = static_cast<std::int8_t>(piece.shorter + (*at == 'l' ? 1 : -1));
    if (*at == 'z') {
      piece.shorter = 1;
      ++at;
    }
    if (piece.shorter < -2 || piece.shorter > 2) return nullptr;
    if (*at == '\0' || std::strchr("diuxXos", *at) == nullptr) return nullptr;
    piece.conversion = *at;
    const bool is_text = *at == 's';
    if (is_text && (piece.is_zero_filled || piece.is_alternate || piece.shorter != 0)) return nullptr;
    if (!is_text && piece.precision >= 0) return nullptr;
    if (piece.is_left && piece.is_zero_filled) return nullptr;
    return at + 1;
  }

  std::optional<std::uint32_t> number(const tep_print_arg* arg, Piece& piece) {
    if (arg == nullptr || arg->type == TEP_PRINT_NULL) return std::nullopt;
    const auto node = expression(arg, 0);
    if (!node) return std::nullopt;
    piece.source = Source::Number;
    piece.node = *node;
    return add(std::move(piece));
  }

  std::optional<std::uint32_t> text(const tep_print_arg* arg, Piece piece, int depth) {
    if (arg == nullptr || depth > kDeepest) return std::nullopt;
    switch (arg->type) {
      case TEP_PRINT_ATOM:
        return literal_text(arg->atom.atom, std::move(piece));
      case TEP_PRINT_BSTRING:
        return literal_text(arg->string.string, std::move(piece));
      case TEP_PRINT_FIELD:
        return field_text(field_of(*arg), std::move(piece));
      case TEP_PRINT_STRING:
        return located_text(*arg, std::move(piece));
      case TEP_PRINT_FLAGS:
        piece.text = arg->flags.delim != nullptr ? arg->flags.delim : "";
        return named(arg->flags.field, arg->flags.flags, Source::Flags, std::move(piece));
      case TEP_PRINT_SYMBOL:
        return named(arg->symbol.field, arg->symbol.symbols, Source::Symbol, std::move(piece));
      case TEP_PRINT_OP:
        return choice(arg->op, std::move(piece), depth);
      case TEP_PRINT_TYPE:  // ((void *)0)
        return is_null(arg->typecast.item) ? literal_text("", std::move(piece)) : std::nullopt;
      default:
        return std::nullopt;
    }
  }
  static bool is_null(const tep_print_arg* arg) {
    return arg != nullptr && arg->type == TEP_PRINT_ATOM && arg->atom.atom != nullptr &&
           std::string_view(arg->atom.atom) == "0";
  }
  std::optional<std::uint32_t> literal_text(const char* literal, Piece piece) {
    if (literal == nullptr) return std::nullopt;
    piece.source = Source::Literal;
    if (piece.is_precision_a_node) {
      piece.text = literal;
      return add(std::move(piece));
    }
    std::string_view text = literal;
    if (piece.precision >= 0) text = text.substr(0, static_cast<std::size_t>(piece.precision));
    TextBuffer shaped;
    piece.is_left ? shaped.left(text, piece.width) : shaped.padded(text, piece.width);
    piece.text = shaped.view();
    return add(std::move(piece));
  }
  std::optional<std::uint32_t> field_text(const tep_format_field* field, Piece piece) {
    if (!is_within_record(field) || field->size <= 0) return std::nullopt;
    if ((field->flags & TEP_FIELD_IS_ARRAY) == 0 && field->size == 8) {  // a pointer
      piece.source = Source::Pointed;
      piece.offset = static_cast<std::uint32_t>(field->offset);
      return add(std::move(piece));
    }
    piece.source = Source::Field;
    piece.offset = static_cast<std::uint32_t>(field->offset);
    piece.size = static_cast<std::uint32_t>(field->size);
    return add(std::move(piece));
  }
  std::optional<std::uint32_t> located_text(const tep_print_arg& arg, Piece piece) {
    const tep_format_field* field = arg.string.field;
    if (field == nullptr) field = find_field(arg.string.string);
    if (!is_within_record(field)) return std::nullopt;
    piece.source = Source::Located;
    piece.offset = static_cast<std::uint32_t>(field->offset);
    piece.size = static_cast<std::uint32_t>(field->size);
    piece.is_relative = (field->flags & TEP_FIELD_IS_RELATIVE) != 0;
    return add(std::move(piece));
  }
  std::optional<std::uint32_t> named(const tep_print_arg* field, const tep_print_flag_sym* row, Source source,
                                     Piece piece) {
    if (field == nullptr) return std::nullopt;
    const auto node = expression(field, 0);
    if (!node) return std::nullopt;
    piece.source = source;
    piece.node = *node;
    for (; row != nullptr; row = row->next) {
      // Some names are values in the library (of softirqs); it prints formats with these.
      if (row->value == nullptr || row->value[0] < '0' || row->value[0] > '9') return std::nullopt;
      piece.names.push_back({static_cast<std::int64_t>(std::strtoull(row->value, nullptr, 0)),
                             row->str != nullptr ? row->str : ""});
    }
    return add(std::move(piece));
  }
  std::optional<std::uint32_t> choice(const tep_print_arg_op& op, Piece piece, int depth) {
    if (op.op == nullptr || std::strcmp(op.op, "?") != 0 || op.right == nullptr) return std::nullopt;
    if (op.right->type != TEP_PRINT_OP) return std::nullopt;
    const auto node = expression(op.left, depth + 1);
    const auto yes = text(op.right->op.left, piece, depth + 1),
               no = text(op.right->op.right, piece, depth + 1);
    if (!node || !yes || !no) return std::nullopt;
    piece.source = Source::Choice;
    piece.node = *node;
    piece.yes = *yes;
    piece.no = *no;
    return add(std::move(piece));
  }

  const tep_format_field* find_field(const char* name) const {
    return name == nullptr ? nullptr : tep_find_any_field(const_cast<tep_event*>(event_), name);
  }
  const tep_format_field* field_of(const tep_print_arg& arg) const {
    return arg.field.field != nullptr ? arg.field.field : find_field(arg.field.name);
  }

  std::uint32_t add(const Node& node) {
    program_.nodes_.push_back(node);
    return static_cast<std::uint32_t>(program_.nodes_.size() - 1);
  }
  std::uint32_t constant(std::uint64_t value) {
    Node node;
    node.value = value;
    return add(node);
  }
  bool is_constant(std::uint32_t node) const { return program_.nodes_[node].op == Op::Constant; }
  // Expressions that do not depend on the record are evaluated now.
  std::uint32_t folded(const Node& node) {
    const std::uint32_t number = add(node);
    const bool is_fixed = is_constant(node.left) && is_constant(node.right) && is_constant(node.third);
    return is_fixed ? constant(program_.value_of(number, {})) : number;
  }

  std::optional<std::uint32_t> expression(const tep_print_arg* arg, int depth) {
    if (arg == nullptr || depth > kDeepest) return std::nullopt;
    switch (arg->type) {
      case TEP_PRINT_NULL:
        return constant(0);
      case TEP_PRINT_ATOM:
        if (arg->atom.atom == nullptr) return std::nullopt;
        return constant(std::strtoull(arg->atom.atom, nullptr, 0));
      case TEP_PRINT_FIELD:
        return field(field_of(*arg));
      case TEP_PRINT_TYPE:
        return cast(arg->typecast, depth);
      case TEP_PRINT_OP:
        return operation(arg->op, depth);
      default:
        return std::nullopt;
    }
  }
  std::optional<std::uint32_t> field(const tep_format_field* field) {
    if (!is_within_record(field) || !is_size(field->size)) return std::nullopt;
    Node node;
    node.op = Op::Field;
    node.value = static_cast<std::uint64_t>(field->offset);
    node.size = static_cast<std::uint8_t>(field->size);
    return add(node);
  }
  // REC->args[2]
  std::optional<std::uint32_t> element(const tep_print_arg_op& op, int depth) {
    if (op.left == nullptr || op.left->type != TEP_PRINT_FIELD) return std::nullopt;
    const tep_format_field* const field = field_of(*op.left);
    const auto index = expression(op.right, depth + 1);
    if (!index || !is_constant(*index) || !is_within_record(field)) return std::nullopt;
    const auto size = static_cast<int>(field->elementsize);
    const std::uint64_t number = program_.nodes_[*index].value;
    if (!is_size(size) || number > kLargestRecord) return std::nullopt;
    Node node;
    node.op = Op::Field;
    node.value = static_cast<std::uint64_t>(field->offset) + number * static_cast<std::uint64_t>(size);
    node.size = static_cast<std::uint8_t>(size);
    return add(node);
  }
  std::optional<std::uint32_t> cast(const tep_print_arg_typecast& typecast, int depth) {
    struct Row {
      std::string_view name;
      std::uint8_t size;
    };
    // Signed types lose their sign again in the library, which keeps the low bits only: what counts is how
    // many.
    static constexpr Row kTypes[] = {{"unsigned char", 1},
                                     {"unsigned short", 2},
                                     {"unsigned int", 4},
                                     {"char", 1},
                                     {"short", 2},
                                     {"int", 4},
                                     {"u8", 1},
                                     {"s8", 1},
                                     {"u16", 2},
                                     {"s16", 2},
                                     {"u32", 4},
                                     {"s32", 4},
                                     {"u64", 8},
                                     {"s64", 8},
                                     {"unsigned long long", 8},
                                     {"long long", 8},
                                     {"unsigned long", 8},
                                     {"long", 8}};
    const auto inner = expression(typecast.item, depth + 1);
    if (!inner || typecast.type == nullptr) return std::nullopt;
    const auto row = std::ranges::find(kTypes, std::string_view(typecast.type), &Row::name);
    if (row == std::end(kTypes)) return std::nullopt;
    if (row->size == 8) return inner;
    Node node;
    node.op = Op::Cast;
    node.size = row->size;
    node.left = node.right = node.third = *inner;
    return folded(node);
  }
  std::optional<std::uint32_t> operation(const tep_print_arg_op& op, int depth) {
    if (op.op == nullptr) return std::nullopt;
    const std::string_view name = op.op;
    if (name == "[") return element(op, depth);
    Node node;
    if (name == "?") {
      if (op.right == nullptr || op.right->type != TEP_PRINT_OP) return std::nullopt;
      const auto which = expression(op.left, depth + 1), yes = expression(op.right->op.left, depth + 1),
                 no = expression(op.right->op.right, depth + 1);
      if (!which || !yes || !no) return std::nullopt;
      node = {Op::Choose, 0, *which, *yes, *no, 0};
      return folded(node);
    }
    struct Row {
      std::string_view name;
      Op op;
    };
    static constexpr Row kRows[] = {{"!", Op::Not},         {"~", Op::Invert},      {"||", Op::LogicalOr},
                                    {"&&", Op::LogicalAnd}, {"|", Op::Or},          {"&", Op::And},
                                    {"==", Op::Equal},      {"!=", Op::Unequal},    {"<", Op::Less},
                                    {"<=", Op::LessEqual},  {">", Op::Greater},     {">=", Op::GreaterEqual},
                                    {"<<", Op::ShiftLeft},  {">>", Op::ShiftRight}, {"+", Op::Add},
                                    {"-", Op::Subtract},    {"*", Op::Multiply},    {"/", Op::Divide}};
    const auto row = std::ranges::find(kRows, name, &Row::name);
    if (row == std::end(kRows)) return std::nullopt;
    const auto right = expression(op.right, depth + 1);
    const auto left = op.left == nullptr ? std::optional(constant(0)) : expression(op.left, depth + 1);
    if (!left || !right) return std::nullopt;
    const bool divides = row->op == Op::Divide;
    if (divides && (!is_constant(*right) || program_.nodes_[*right].value == 0)) return std::nullopt;
    const bool shifts = row->op == Op::ShiftLeft || row->op == Op::ShiftRight;
    if (shifts && (!is_constant(*right) || program_.nodes_[*right].value > 63)) return std::nullopt;
    node = {row->op, 0, *left, *right, *right, 0};
    return folded(node);
  }

  const tep_event* event_;
  PrintProgram program_;
};

std::optional<PrintProgram> PrintProgram::compile(const tep_event& event,
                                                  const format::ConstantStrings& strings) {
  return Compiler(event, strings).compile();
}

}  // namespace tacho::report
