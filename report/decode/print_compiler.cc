// The compiler of PrintProgram: translates libtraceevent's syntax tree of a print format.
#include <traceevent/event-parse.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "report/decode/payload.h"
#include "report/decode/print_program.h"
#include "report/output/text_output.h"

namespace tacho::report {
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
