// A tracepoint's print format, compiled once: literal text, numbers at fixed places with their conversion,
// and texts. Running it costs a fraction of what libtraceevent needs, which goes through the format's tree by
// printf for every record. What it does not cover is not compiled, and stays with that library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/extensions/tracing_data.h"
#include "report/output/text_output.h"

struct tep_event;  // libtraceevent's

namespace tacho::report {

class PrintProgram {
 public:
  // Nothing when the format holds something that is not covered. `event` need not outlive the program,
  // `strings` (of the capture) must. Only for captures of this machine's byte order with longs of 8 bytes.
  static std::optional<PrintProgram> compile(const tep_event& event, const format::ConstantStrings& strings);

  // Whether the text holds nothing of the record but numbers, and nothing of the format that is not to be
  // shown as it stands.
  bool is_plain() const { return is_plain_; }
  // The text of one record, as libtraceevent prints it. Bytes beyond the record's end count as zero.
  void run(TextBuffer& out, format::Bytes record) const;

 private:
  enum class Op : std::uint8_t {
    Constant,
    Field,  // `value`; the number of `size` bytes at offset `value`
    Cast,
    Choose,
    Not,
    Invert,
    LogicalOr,
    LogicalAnd,
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
  };
  struct Node {
    Op op = Op::Constant;
    std::uint8_t size = 0;                         // bytes of a field, or that a cast keeps
    std::uint32_t left = 0, right = 0, third = 0;  // numbers of nodes
    std::uint64_t value = 0;
  };
  struct Name {  // of a flag or a symbol
    std::int64_t value = 0;
    std::string text;
  };
  enum class Source : std::uint8_t { Literal, Number, Field, Located, Pointed, Flags, Symbol, Choice };
  // A piece of the text. Choices hold the numbers of two other pieces.
  struct Piece {
    Source source = Source::Literal;
    bool is_relative = false;  // Located: counted from the field's end
    std::uint32_t node = 0;    // Number, Flags, Symbol, Choice
    std::uint32_t offset = 0, size = 0;
    std::uint32_t yes = 0, no = 0;
    std::string text;  // Literal; Flags: what stands between two
    std::vector<Name> names;
    char conversion = 'd';
    std::int8_t shorter = 0;  // -2 char, -1 short, 0 int, 1 and 2 long
    bool is_left = false, is_zero_filled = false, is_alternate = false;
    std::uint16_t width = 0;
    std::int32_t precision = -1;
    bool is_precision_a_node = false;  // "%.*s": `precision_node` says how much, as an int
    std::uint32_t precision_node = 0;
  };

  // What a line is made of, in order. The usual pieces are described here as a whole: a few characters, or a
  // field of the record as a plain number.
  struct Step {
    enum class Kind : std::uint8_t { Any, Text, Signed, Unsigned, Hex };
    Kind kind = Kind::Any;
    std::uint8_t size = 0;    // characters of `text`, bytes of the field
    std::int8_t shorter = 0;  // as in Piece
    std::uint16_t width = 0;
    std::uint32_t at = 0;  // Any: number of the piece; else the field's offset
    char text[TextBuffer::kShort] = {};
  };

  class Compiler;
  std::uint64_t value_of(std::uint32_t node, format::Bytes record) const;
  void write(TextBuffer& out, const Piece& piece, format::Bytes record) const;
  void write_number(TextBuffer& out, const Piece& piece, std::uint64_t value) const;
  void write_flags(TextBuffer& out, const Piece& piece, std::uint64_t value) const;
  void write_symbol(TextBuffer& out, const Piece& piece, std::uint64_t value) const;

  std::vector<Node> nodes_;
  std::vector<Piece> pieces_;
  std::vector<Step> line_;
  const format::ConstantStrings* strings_ = nullptr;
  bool is_plain_ = false;
};

}  // namespace tacho::report
