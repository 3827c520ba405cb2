// Values of expressions and the operations on them: 64-bit integers, fractions, texts, or nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/expression.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// A value that every sample has apart from its payload: thread, CPU, time. Keys and conditions name it.
// Where a payload field has the same name, "sample.NAME" means this one.

struct OwnValue {
  std::string_view name;
  std::string_view unit;  // as PayloadField::unit
  bool is_text = false;
  FieldValue (*of)(const ResolvedSample&) = nullptr;
};

std::span<const OwnValue> own_values();
// Finds "comm" or "sample.comm"; null when there is no such value.
const OwnValue* find_own_value(std::string_view name);
// Whether `name` starts with "sample.", so that it cannot be a payload field.
bool is_own_name(std::string_view name);
// "comm, pid, tid, ...", for messages.
std::string own_value_names();

__extension__ using Int128 =
    __int128;  // holds signed and unsigned 64-bit numbers, and sums and products of two

struct ExpressionValue {
  enum class Kind : std::uint8_t { Nothing, Whole, Real, Text };
  Kind kind = Kind::Nothing;
  Int128 whole = 0;
  double real = 0;
  std::string_view text;

  static ExpressionValue of(Int128 whole) {
    ExpressionValue value;
    value.kind = Kind::Whole;
    value.whole = whole;
    return value;
  }
  static ExpressionValue of_real(double real) {
    ExpressionValue value;
    value.kind = Kind::Real;
    value.real = real;
    return value;
  }
  static ExpressionValue of_text(std::string_view text) {
    ExpressionValue value;
    value.kind = Kind::Text;
    value.text = text;
    return value;
  }
  bool is_nothing() const { return kind == Kind::Nothing; }
  // A number that is not 0.
  bool is_true() const { return (kind == Kind::Whole && whole != 0) || (kind == Kind::Real && real != 0); }
};

// Operations on integers give integers, except for a quotient with a remainder. An operand that is nothing
// gives nothing, but `true || nothing` is true and `false && nothing` is false. Operations without a result
// (a division by 0, a text with a number) give nothing.
ExpressionValue apply(cli::Operation operation, const ExpressionValue& left, const ExpressionValue& right);

}  // namespace tacho::report
