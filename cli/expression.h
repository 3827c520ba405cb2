// The parser of expressions over named values, in C's notation: `lat_ns > 1ms && comm == "dd"`. --where,
// --filter and --value take one. The parser makes a tree of the text; callers give its names a meaning.
//
//   values:     12  0x1f  1.5  1e6    4k 4KiB 2M (k is 1024)    10us 1.5ms 2s
//               "text"  'text'    a.field  list[2]
//   operators:  ||   &&   == != ~ !~ < <= > >=   |   &   + -   * / %   ! -     by rising precedence
//               ~ matches a text against the pattern on its right, in which * and ? are wildcards
//
// Unlike in C, & and | bind tighter than a comparison, so that a bit test needs no parentheses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/base/units.h"

namespace tacho::cli {

enum class Operation : std::uint8_t {
  // Leaves.
  Whole,  // an integer
  Real,   // a number with a fraction
  Text,
  Name,
  // With one operand: `left`.
  Not,
  Minus,
  // With two operands.
  Or,
  And,
  Equal,
  Unequal,
  Like,
  Unlike,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
  BitOr,
  BitAnd,
  Plus,
  Difference,
  Times,
  Quotient,
  Rest,
};

// The unit of a number: a Time is kept in nanoseconds and a size in bytes, with any unit in the text.
using NumberUnit = format::Quantity;

struct ExpressionNode {
  Operation operation = Operation::Whole;
  NumberUnit unit = NumberUnit::None;
  std::uint32_t left = 0, right = 0;  // operands: nodes before this one
  std::uint32_t index = 0;            // of a Name: the element of a list
  std::uint64_t whole = 0;
  double real = 0;
  std::string text = {};  // of a Text or Name
  std::size_t at = 0;     // index of its first byte in the source
};

struct Expression {
  std::string source;
  std::vector<ExpressionNode> nodes;  // the last one is the root; a parsed expression has at least one
  const ExpressionNode& root() const { return nodes.back(); }
};

// An error names `option` and the column (error_at() in cli/message_text.h).
Result<Expression> parse_expression(std::string_view option, std::string_view text);

// Whether the whole of `text` matches `pattern`, in which * matches any number of bytes and ? one byte.
// Takes time proportional to the product of the two lengths at most.
bool looks_like(std::string_view text, std::string_view pattern);

}  // namespace tacho::cli
