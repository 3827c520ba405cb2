// The text of a tracepoint's record by its print format, which is in the capture. Common formats are compiled
// to a list of steps; the others are printed by libtraceevent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/extensions/tracing_data.h"
#include "report/output/text_output.h"

struct tep_event;  // libtraceevent's

namespace tacho::report {

// A tracepoint's print format compiled to a list of steps: literal text, fields with their printf conversion,
// strings. It runs many times faster than libtraceevent, which walks the format's syntax tree for each
// record. Formats with anything else are not compiled; libtraceevent prints them.
class PrintProgram {
 public:
  // nullopt when the format has something that is not supported. `strings` (of the capture) must outlive the
  // program, `event` need not. Only for captures of this machine's byte order with an 8-byte long.
  static std::optional<PrintProgram> compile(const tep_event& event, const format::ConstantStrings& strings);

  // Whether the text consists of numbers and printable text of the format, so that it is safe to print.
  bool is_plain() const { return is_plain_; }
  // Appends the text of one record, as libtraceevent prints it. Bytes beyond the record's end are zero.
  void print_record(TextBuffer& out, format::Bytes record) const;

 private:
  enum class Op : std::uint8_t {
    Constant,
    Field,  // the number of `size` bytes at offset `value`
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
    std::uint32_t left = 0, right = 0, third = 0;  // indices of nodes
    std::uint64_t value = 0;
  };
  struct Name {  // of a flag or a symbol
    std::int64_t value = 0;
    std::string text;
  };
  enum class Source : std::uint8_t { Literal, Number, Field, Located, Pointed, Flags, Symbol, Choice };
  // A piece of the text. A Choice has the indices of two other pieces.
  struct Piece {
    Source source = Source::Literal;
    bool is_relative = false;  // Located: the offset counts from the field's end (__rel_loc)
    std::uint32_t node = 0;    // Number, Flags, Symbol, Choice
    std::uint32_t offset = 0, size = 0;
    std::uint32_t yes = 0, no = 0;
    std::string text;  // Literal; Flags: the separator
    std::vector<Name> names;
    char conversion = 'd';
    std::int8_t shorter = 0;  // -2 char, -1 short, 0 int, 1 and 2 long
    bool is_left = false, is_zero_filled = false, is_alternate = false;
    std::uint16_t width = 0;
    std::int32_t precision = -1;
    bool is_precision_a_node = false;  // "%.*s": the precision is the value of `precision_node`
    std::uint32_t precision_node = 0;
  };

  // The steps that print a line. Common pieces (short text, a field as a plain number) are a step by
  // themselves, others refer to a Piece.
  struct Step {
    enum class Kind : std::uint8_t { Any, Text, Signed, Unsigned, Hex };
    Kind kind = Kind::Any;
    std::uint8_t size = 0;    // characters of `text`, bytes of the field
    std::int8_t shorter = 0;  // as in Piece
    std::uint16_t width = 0;
    std::uint32_t at = 0;  // Any: index of the piece; else the field's offset
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

// Prints tracepoint records by their print format. Common formats are compiled to a PrintProgram;
// libtraceevent, perf's library, evaluates the others.
class TracepointText {
 public:
  // Name and start of the kernel function at an address, for %pS; nullopt when unknown.
  struct Function {
    std::string name;
    std::uint64_t start = 0;
  };
  using FindFunction = std::function<std::optional<Function>(std::uint64_t address)>;

  // `tracing` must outlive this. A format is parsed at its first record. Evaluation::Library never compiles
  // formats: a test compares the two.
  enum class Evaluation : std::uint8_t { Fast, Library };
  TracepointText(const format::TracingData& tracing, FindFunction find_function,
                 Evaluation evaluation = Evaluation::Fast);
  TracepointText(TracepointText&&) noexcept;
  TracepointText& operator=(TracepointText&&) noexcept;
  ~TracepointText();

  // The text of a record of tracepoint `id` (attr.config), valid until the next call. nullopt when the
  // capture has no format for it.
  std::optional<std::string_view> text_of(std::uint64_t id, format::Bytes record, std::uint32_t cpu,
                                          std::endian order);
  // Appends the same text if it is safe to print as it is (PrintProgram::is_plain()). Otherwise appends
  // nothing and returns false.
  bool write_plain(TextBuffer& out, std::uint64_t id, format::Bytes record, std::endian order);
  // Reports records that could not be printed by their format because the system refused something. To be
  // called once, at the end.
  void report(format::Diagnostics& diagnostics) const;
  // After text_of(): whether the tracepoint's format was compiled.
  bool is_compiled(std::uint64_t id) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
