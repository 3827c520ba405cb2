#include "report/decode/tracepoint_text.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/extensions/tracing_data.h"
#include "report/decode/payload.h"

namespace tacho::report {
namespace {

// The number of `size` (1, 2, 4, 8) bytes at `offset`; 0 if it is not completely in the record.
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

// The argument converted to the C type of a length modifier (Piece::shorter).
std::int64_t as_argument(std::uint64_t value, std::int8_t shorter) {
  if (shorter == 0) return static_cast<std::int32_t>(value);
  if (shorter == -1) return static_cast<std::int16_t>(value);
  if (shorter == -2) return static_cast<std::int8_t>(value);
  return static_cast<std::int64_t>(value);
}

// An unsigned conversion reads the argument, which was promoted to int or wider, with the width of the
// modifier.
std::uint64_t as_unsigned(std::uint64_t value, std::int8_t shorter) {
  static constexpr std::uint64_t kMasks[] = {0xff, 0xffff, 0xffffffff, ~std::uint64_t{0}, ~std::uint64_t{0}};
  return static_cast<std::uint64_t>(as_argument(value, shorter)) & kMasks[shorter + 2];
}

// Strings with printf's flags: cut by the precision, padded to the width.
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

// Writes "A|B"; bits without a name are added as a number.
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
    case Source::Pointed: {  // the library ignores width and precision here
      std::uint64_t address = 0;
      const std::size_t there = record.size() - std::min<std::size_t>(piece.offset, record.size());
      if (there != 0) std::memcpy(&address, record.last(there).data(), std::min(there, sizeof address));
      if (const std::string* const text = strings_->find_string(address)) return out.text(*text);
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

void PrintProgram::print_record(TextBuffer& out, format::Bytes record) const {
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

namespace {

constexpr int kDeepest = 64;  // nested expressions
constexpr std::uint16_t kWidest = 999;

bool is_size(int size) { return size == 1 || size == 2 || size == 4 || size == 8; }

bool is_within_record(const tep_format_field* field) {
  return field != nullptr && field->offset >= 0 && static_cast<std::uint32_t>(field->offset) < kLargestRecord;
}

}  // namespace

// Walks libtraceevent's syntax tree of a print format. Each function returns nullopt for something that is
// not supported.
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

  // Parses "-08.3lx": returns the rest, or null if it is not supported.
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
      // Some names of the library have expressions as values (softirqs): it prints formats with these.
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
  std::uint32_t constant(std::uint64_t value) { return add(Node{.value = value}); }
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
    return add(Node{.op = Op::Field,
                    .size = static_cast<std::uint8_t>(field->size),
                    .value = static_cast<std::uint64_t>(field->offset)});
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
    const std::uint64_t offset =
        static_cast<std::uint64_t>(field->offset) + number * static_cast<std::uint64_t>(size);
    return add(Node{.op = Op::Field, .size = static_cast<std::uint8_t>(size), .value = offset});
  }
  std::optional<std::uint32_t> cast(const tep_print_arg_typecast& typecast, int depth) {
    struct Row {
      std::uint8_t size;
      std::initializer_list<std::string_view> names;
    };
    // The library drops the sign of a cast and keeps the low bits, so only the size matters.
    static const Row kTypes[] = {
        {1, {"unsigned char", "char", "u8", "s8"}},
        {2, {"unsigned short", "short", "u16", "s16"}},
        {4, {"unsigned int", "int", "u32", "s32"}},
        {8, {"u64", "s64", "unsigned long long", "long long", "unsigned long", "long"}}};
    const auto inner = expression(typecast.item, depth + 1);
    if (!inner || typecast.type == nullptr) return std::nullopt;
    const auto row = std::ranges::find_if(kTypes, [&](const Row& one) {
      return std::ranges::find(one.names, std::string_view(typecast.type)) != one.names.end();
    });
    if (row == std::end(kTypes)) return std::nullopt;
    if (row->size == 8) return inner;
    return folded({Op::Cast, row->size, *inner, *inner, *inner, 0});
  }
  std::optional<std::uint32_t> operation(const tep_print_arg_op& op, int depth) {
    if (op.op == nullptr) return std::nullopt;
    const std::string_view name = op.op;
    if (name == "[") return element(op, depth);
    if (name == "?") {
      if (op.right == nullptr || op.right->type != TEP_PRINT_OP) return std::nullopt;
      const auto which = expression(op.left, depth + 1), yes = expression(op.right->op.left, depth + 1),
                 no = expression(op.right->op.right, depth + 1);
      if (!which || !yes || !no) return std::nullopt;
      return folded({Op::Choose, 0, *which, *yes, *no, 0});
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
    return folded({row->op, 0, *left, *right, *right, 0});
  }

  const tep_event* event_;
  PrintProgram program_;
};

std::optional<PrintProgram> PrintProgram::compile(const tep_event& event,
                                                  const format::ConstantStrings& strings) {
  return Compiler(event, strings).compile();
}

namespace {

// libtraceevent trusts offsets and lengths in a record and its format. A record is below 64 KiB, offsets in
// it have 16 bits, and lengths are checked or have 16 bits of at most 8 bytes each. So the record is copied
// into a buffer of this size, filled with zeros, and all reads stay inside.
constexpr std::size_t kRoom = std::size_t{1} << 20;  // bytes
constexpr int kDeepestFormat = 64;                   // nested expressions
// The number of formats in one handle of the library: the time to add one is proportional to those in it.
constexpr std::size_t kFormatsOfAHandle = 1024;
// The limit of constant strings in all handles, each of which has a copy; a kernel has hundreds.
constexpr std::size_t kMostStringLookups = std::size_t{1} << 20;

struct FreeHandle {
  void operator()(tep_handle* handle) const noexcept { tep_free(handle); }
};
using Handle = std::unique_ptr<tep_handle, FreeHandle>;

class Sequence {  // libtraceevent's growing text
 public:
  Sequence() { trace_seq_init(&seq_); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { trace_seq_destroy(&seq_); }
  trace_seq* get() { return &seq_; }
  void reset() { trace_seq_reset(&seq_); }
  std::string_view view() const {
    return seq_.buffer ? std::string_view(seq_.buffer, seq_.len) : std::string_view();
  }

 private:
  trace_seq seq_{};
};

bool is_number(const tep_print_arg* arg, unsigned long long least, unsigned long long most) {
  if (arg == nullptr || arg->type != TEP_PRINT_ATOM || arg->atom.atom == nullptr) return false;
  char* end = nullptr;
  const auto value = std::strtoull(arg->atom.atom, &end, 0);
  return end != arg->atom.atom && value >= least && value <= most;
}

// Decides whether evaluating a print format is safe for any bytes of a record.
class SafetyCheck {
 public:
  bool is_safe(const tep_event& event) {
    if ((event.flags & (TEP_EVENT_FL_ISPRINT | TEP_EVENT_FL_ISBPRINT)) != 0) return false;
    if (!fits(event.format.common_fields) || !fits(event.format.fields)) return false;
    if ((event.flags & static_cast<int>(TEP_EVENT_FL_FAILED)) != 0) return true;
    return widths_are_small(event.print_fmt.format) && all_safe(event.print_fmt.args, 0);
  }
  // Fields with a number of bytes to read, which must not exceed the record's size.
  std::vector<tep_format_field*> lengths;
  bool needs_program = false;  // safe for PrintProgram, not for the library

 private:
  static bool fits(const tep_format_field* field) {
    for (; field != nullptr; field = field->next) {
      if (field->offset < 0 || field->size < 0 || field->offset > kLargestRecord) return false;
      if (field->size > kLargestRecord) return false;
    }
    return true;
  }
  // A width from the record, or a very large one, could make gigabytes of blanks. The library misreads "%.*s"
  // with a negative precision as a format without that argument, so only PrintProgram prints such formats.
  bool widths_are_small(const char* format) {
    for (; format != nullptr && *format != '\0'; ++format) {
      if (*format != '%') continue;
      if (format[1] == '%') ++format;
      if (format[1] == '.' && format[2] == '*' && format[3] == 's') {
        needs_program = true;
        format += 2;
        continue;
      }
      for (int digits = 0; format[1] != '\0' && std::strchr("-+ #0123456789.*hlLzZ", format[1]) != nullptr;
           ++format) {
        digits = std::isdigit(static_cast<unsigned char>(format[1])) != 0 ? digits + 1 : 0;
        if (format[1] == '*' || digits > 3) return false;
      }
    }
    return true;
  }
  bool all_safe(const tep_print_arg* arg, int depth) {
    for (; arg != nullptr; arg = arg->next) {
      if (!one_safe(arg, depth)) return false;
    }
    return true;
  }
  bool one_safe(const tep_print_arg* arg, int depth) {
    if (arg == nullptr || depth > kDeepestFormat) return false;
    switch (arg->type) {
      case TEP_PRINT_NULL:
      case TEP_PRINT_ATOM:
      case TEP_PRINT_FIELD:
      case TEP_PRINT_STRING:
      case TEP_PRINT_BITMASK:
      case TEP_PRINT_CPUMASK:
      case TEP_PRINT_DYNAMIC_ARRAY:
      case TEP_PRINT_DYNAMIC_ARRAY_LEN:
        return true;
      case TEP_PRINT_FLAGS:
        return one_safe(arg->flags.field, depth + 1);
      case TEP_PRINT_SYMBOL:
        return one_safe(arg->symbol.field, depth + 1);
      case TEP_PRINT_TYPE:
        return one_safe(arg->typecast.item, depth + 1);
      case TEP_PRINT_HEX:
      case TEP_PRINT_HEX_STR:
        return is_place(arg->hex.field) && is_length(arg->hex.size);
      case TEP_PRINT_INT_ARRAY:
        return is_place(arg->int_array.field) && is_length(arg->int_array.count) &&
               is_number(arg->int_array.el_size, 1, 8);
      case TEP_PRINT_OP:
        return operation_safe(arg->op, depth);
      default:
        return false;
    }
  }
  bool operation_safe(const tep_print_arg_op& op, int depth) {
    if (op.op == nullptr) return false;
    const char first = op.op[0];
    if (first == '[') return is_place(op.left) && is_number(op.right, 0, 4096);
    // A divisor of zero would end the program.
    if ((first == '/' || first == '%') && !is_number(op.right, 1, ~0ULL)) return false;
    const bool is_unary = op.left == nullptr || op.left->type == TEP_PRINT_NULL;
    return (is_unary || one_safe(op.left, depth + 1)) && one_safe(op.right, depth + 1);
  }
  static bool is_place(const tep_print_arg* arg) {
    return arg != nullptr && (arg->type == TEP_PRINT_FIELD || arg->type == TEP_PRINT_DYNAMIC_ARRAY);
  }
  bool is_length(const tep_print_arg* arg) {
    while (arg != nullptr && arg->type == TEP_PRINT_TYPE) arg = arg->typecast.item;
    if (arg == nullptr) return false;
    if (arg->type == TEP_PRINT_DYNAMIC_ARRAY_LEN) return true;
    if (arg->type == TEP_PRINT_FIELD && arg->field.field != nullptr) {
      lengths.push_back(arg->field.field);
      return true;
    }
    return is_number(arg, 0, kLargestRecord);
  }
};

// The library's parser crashes on some broken formats, so a child process parses them first.
enum class Tried { Sound, Deadly, Refused };
template <class Try>
Tried try_in_child(Try&& attempt) {
  constexpr unsigned kPatience = 5;  // seconds
  const pid_t child = ::fork();
  if (child < 0) return Tried::Refused;
  if (child == 0) {
    for (const int fatal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(fatal, SIG_DFL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::alarm(kPatience);
    attempt();
    ::_exit(0);  // none of the parent's buffers may be written twice
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Tried::Refused;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Tried::Sound : Tried::Deadly;
}

struct Format {
  const format::TracepointFormat* source = nullptr;
  bool is_parsed = false;
  tep_event* event = nullptr;           // null: not to be evaluated
  std::optional<PrintProgram> program;  // the fast way to the same text
  std::vector<tep_format_field*> lengths;
};

}  // namespace

struct TracepointText::State {
  const format::TracingData* tracing;
  format::ConstantStrings strings;
  FindFunction find_function;
  std::string found_name;            // what the resolver returned last; libtraceevent copies it
  std::vector<Handle> handles;       // formats are parsed into the last
  std::size_t parsed_into_last = 0;  // how many
  std::unordered_map<std::uint64_t, Format, format::SeededHash> formats;
  Evaluation evaluation = Evaluation::Fast;
  std::size_t refused = 0;  // formats that were not tried because the system refused to start a child
  bool has_too_many_strings = false;
  bool one_at_a_time = false;  // the parser crashed on a format of this capture
  TextBuffer fast_text;
  std::vector<char> room = std::vector<char>(kRoom);
  Sequence sequence;

  // A cache by the low bits of the format's number: few formats are used in turns.
  struct Recent {
    std::uint64_t id = 0;
    Format* format = nullptr;
  };
  std::array<Recent, 64> recent{};

  static char* resolve(void* self, unsigned long long* address, char** module) noexcept;
  Format* parsed(std::uint64_t id, format::Bytes record, std::endian order);
  bool make_room_for_formats();
  void parse(Format& wanted);
  std::vector<Format*> not_parsed(const Format& from);
  bool parse_text(const Format& format);
  void examine(Format& format);
  bool lengths_fit(const Format& format, std::size_t size);
};

char* TracepointText::State::resolve(void* self, unsigned long long* address, char** module) noexcept {
  auto& state = *static_cast<State*>(self);
  auto function = state.find_function(*address);
  if (!function) return nullptr;
  state.found_name = std::move(function->name);
  *address = function->start;
  *module = nullptr;
  return state.found_name.data();
}

TracepointText::TracepointText(const format::TracingData& tracing, FindFunction find_function,
                               Evaluation evaluation)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.evaluation = evaluation;
  state.tracing = &tracing;
  state.strings = format::ConstantStrings(tracing.printk_formats);
  state.find_function = std::move(find_function);
  tep_set_loglevel(TEP_LOG_NONE);
  for (const auto& format : tracing.formats) {
    if (const auto id = format::tracepoint_id(format.text))
      state.formats.emplace(*id, Format{&format, false, nullptr, {}, {}});
  }
}

TracepointText::TracepointText(TracepointText&&) noexcept = default;
TracepointText& TracepointText::operator=(TracepointText&&) noexcept = default;
TracepointText::~TracepointText() = default;

// Opens a handle for the next formats if the last one is full. False: the library is out of memory.
bool TracepointText::State::make_room_for_formats() {
  if (!handles.empty() && parsed_into_last < kFormatsOfAHandle) return true;
  Handle handle(tep_alloc());
  if (handle == nullptr) return false;
  tep_set_flag(handle.get(), TEP_NSEC_OUTPUT);
  tep_set_file_bigendian(handle.get(), tracing->is_big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  tep_set_local_bigendian(handle.get(),
                          std::endian::native == std::endian::big ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  tep_set_long_size(handle.get(), tracing->long_size == 4 ? 4 : 8);
  tep_set_page_size(handle.get(), 4096);
  if (find_function) tep_set_function_resolver(handle.get(), &State::resolve, this);
  // Each handle copies them. The library removes the quotes and a final "\n", for which it reads the two
  // bytes before the closing quote: without one it would read before the start of a text of fewer than two
  // letters.
  if (strings.rows().size() * (handles.size() + 1) <= kMostStringLookups) {
    for (const auto& row : strings.rows())
      tep_register_print_string(handle.get(), ('"' + row.text + "\\n\"").c_str(), row.address);
  } else {
    has_too_many_strings = true;
  }
  handles.push_back(std::move(handle));
  parsed_into_last = 0;
  return true;
}

// Parses a format and the next few in one child process, which costs less than a process for each format. If
// the child crashes, the format is tried alone.
void TracepointText::State::parse(Format& wanted) {
  if (!make_room_for_formats()) return;
  std::vector<Format*> together = not_parsed(wanted);
  const auto parse_all = [&] {
    for (const Format* format : together) parse_text(*format);
  };
  Tried tried = try_in_child(parse_all);
  if (tried == Tried::Deadly && together.size() > 1) {
    one_at_a_time = true;
    together.erase(together.begin() + 1, together.end());
    tried = try_in_child(parse_all);
  }
  if (tried == Tried::Refused) refused += together.size();
  parsed_into_last += together.size();
  for (Format* format : together) {
    format->is_parsed = true;
    if (tried == Tried::Sound && parse_text(*format)) examine(*format);
  }
}

// The unparsed formats from `from` on, in the order of the capture.
std::vector<Format*> TracepointText::State::not_parsed(const Format& from) {
  const std::size_t most = one_at_a_time ? 1 : 64;
  std::vector<Format*> found;
  const std::size_t count = tracing->formats.size();
  const auto first = static_cast<std::size_t>(from.source - tracing->formats.data());
  for (std::size_t i = 0; i < count && found.size() < most; ++i) {
    const format::TracepointFormat& source = tracing->formats[(first + i) % count];
    const auto id = format::tracepoint_id(source.text);
    const auto format = id ? formats.find(*id) : formats.end();
    if (format != formats.end() && format->second.source == &source && !format->second.is_parsed)
      found.push_back(&format->second);
  }
  return found;
}

// The library fails at a byte in a string that is not printable ASCII, such as the tab in maple_tree's
// formats. Such a byte is replaced by an escape sequence, which the library turns back.
std::string with_escaped_strings(std::string_view text) {
  const auto start = std::min(text.find("print fmt:"), text.size());
  std::string escaped(text.substr(0, start));
  for (const char c : text.substr(start)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '\t') {
      escaped += "\\t";
    } else if (c == '\r') {
      escaped += "\\r";
    } else if ((byte < 0x20 && c != '\n') || byte > 0x7e) {
      escaped += fmt::format("\\\\x{:02x}", byte);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// If the library can parse only a part of a format, it keeps the format, marks it, and prints its fields.
bool TracepointText::State::parse_text(const Format& format) {
  const std::string text = with_escaped_strings(format.source->text);
  if (text.size() > std::size_t{1} << 20) return false;
  const auto code =
      tep_parse_event(handles.back().get(), text.c_str(), text.size(), format.source->system.c_str());
  if (code == TEP_ERRNO__MEM_ALLOC_FAILED) throw std::bad_alloc();
  return true;
}

// Decides whether and how records of a parsed format can be printed.
void TracepointText::State::examine(Format& format) {
  const auto id = format::tracepoint_id(format.source->text);
  tep_event* event = tep_find_event(handles.back().get(), static_cast<int>(*id));
  SafetyCheck check;
  if (event == nullptr || !check.is_safe(*event)) return;
  format.event = event;
  const bool is_ours = tracing->long_size == 8 &&
                       tracing->is_big_endian == (std::endian::native == std::endian::big) &&
                       std::endian::native == std::endian::little;
  const auto untried = static_cast<int>(TEP_EVENT_FL_FAILED) | TEP_EVENT_FL_PRINTRAW;
  if (evaluation == Evaluation::Fast && is_ours && (event->flags & untried) == 0)
    format.program = PrintProgram::compile(*event, strings);
  if (check.needs_program && !format.program) format.event = nullptr;
  format.lengths = std::move(check.lengths);
}

bool TracepointText::State::lengths_fit(const Format& format, std::size_t size) {
  return std::ranges::all_of(format.lengths, [&](tep_format_field* field) {
    return tep_read_number(format.event->tep, room.data() + field->offset, field->size) <= size;
  });
}

// The format of a record that can be printed; null: there is none.
Format* TracepointText::State::parsed(std::uint64_t id, format::Bytes record, std::endian order) {
  Recent& cached = recent[id % recent.size()];
  if (cached.format == nullptr || cached.id != id) {
    const auto found = formats.find(id);
    if (found == formats.end()) return nullptr;
    cached = {id, &found->second};
  }
  Format& format = *cached.format;
  if (record.size() > kLargestRecord || record.size() < 2) return nullptr;
  if (!format.is_parsed) parse(format);
  // The library finds the format by the first field of the record: it must be the one that was checked.
  if (format.event == nullptr || format::Cursor(record, order).u16() != id) return nullptr;
  return &format;
}

bool TracepointText::write_plain(TextBuffer& out, std::uint64_t id, format::Bytes record, std::endian order) {
  const Format* const format = state_->parsed(id, record, order);
  if (format == nullptr || !format->program || !format->program->is_plain()) return false;
  format->program->print_record(out, record);
  return true;
}

std::optional<std::string_view> TracepointText::text_of(std::uint64_t id, format::Bytes record,
                                                        std::uint32_t cpu, std::endian order) {
  State& state = *state_;
  const Format* const found = state.parsed(id, record, order);
  if (found == nullptr) return std::nullopt;
  const Format& format = *found;
  if (format.program) {
    state.fast_text.clear();
    format.program->print_record(state.fast_text, record);
    return state.fast_text.view();
  }

  std::memcpy(state.room.data(), record.data(), record.size());
  std::optional<std::string_view> text;
  if (state.lengths_fit(format, record.size())) {
    tep_record in{};
    in.cpu = static_cast<int>(cpu);
    in.size = static_cast<int>(record.size());
    in.data = state.room.data();
    state.sequence.reset();
    tep_print_event(format.event->tep, state.sequence.get(), &in, "%s", TEP_PRINT_INFO);
    text = state.sequence.view();
  }
  std::memset(state.room.data(), 0, record.size());
  return text;
}

void TracepointText::report(format::Diagnostics& diagnostics) const {
  if (state_->has_too_many_strings) {
    diagnostics.add_line(format::Damage::BadFeature,
                         std::to_string(state_->strings.rows().size()) +
                             " constant strings in printk_formats are too many: some are shown as addresses");
  }
  if (state_->refused == 0) return;
  diagnostics.add_line(
      format::Damage::BadFeature,
      std::to_string(state_->refused) +
          " tracepoint formats: the system refuses the child process that tries them first; their "
          "records are printed field by field");
}

bool TracepointText::is_compiled(std::uint64_t id) const {
  const auto found = state_->formats.find(id);
  return found != state_->formats.end() && found->second.program.has_value();
}

}  // namespace tacho::report
