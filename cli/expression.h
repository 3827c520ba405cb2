// What --where takes: a condition over named values, as one writes it in C: `lat_ns > 1ms && comm == "dd"`.
// This is the text as a tree; what its names mean is the caller's to know.
//
//   values      12  0x1f  1.5  1e6    4k 4KiB 2M (steps of 1024)    10us 1.5ms 2s    "text"  'text' a.field
//   list[2] operators   ||   &&   == != ~ !~ < <= > >=   |   &   + -   * / %   ! -   from the loosest to the
//   tightest; ~ is
//               "looks like", with * and ? in the text on its right
//
// A bit test needs no parentheses: & and | bind tighter than a comparison, other than in C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace tacho::cli {

enum class Operation : std::uint8_t {
  Whole,  // the leaves: a whole number,
  Real,   // one with a fraction,
  Text,
  Name,
  Not,  // of the left one
  Minus,
  Or,  // of both
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

// Of a number: Time is in nanoseconds, whatever unit was written; Bytes are bytes.
enum class NumberUnit : std::uint8_t { None, Time, Bytes };

struct ExpressionNode {
  Operation operation = Operation::Whole;
  NumberUnit unit = NumberUnit::None;
  std::uint32_t left = 0, right = 0;  // nodes before this one
  std::uint32_t index = 0;            // of a Name: which element of a list
  std::uint64_t whole = 0;
  double real = 0;
  std::string text = {};  // of a Text or Name
  std::size_t at = 0;     // its first letter in the source
};

struct Expression {
  std::string source;
  std::vector<ExpressionNode> nodes;  // the last one is the whole; never empty once parsed
  const ExpressionNode& root() const { return nodes.back(); }
};

// `option` stands in the message of an error, which shows the place.
Result<Expression> parse_expression(std::string_view option, std::string_view text);

// "--where: at letter 8, 'lat_nz > 1': WHAT"
Error expression_error(std::string_view option, std::string_view source, std::size_t at,
                       std::string_view what);

// Whether `text` looks like `pattern`, in which * stands for any letters and ? for one. Takes time in
// proportion to the product of their lengths at most.
bool looks_like(std::string_view text, std::string_view pattern);

}  // namespace tacho::cli
