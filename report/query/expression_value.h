// What an expression's operations make of values: whole numbers of any 64 bits, fractions, texts, or nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/expression.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// What every sample has by itself, whatever its payload says: thread, processor, time. Views name them in
// keys and conditions; where a field of the payload has the same name, "sample." in front means these.

struct OwnValue {
  std::string_view name;
  std::string_view unit;  // as PayloadField::unit
  bool is_text = false;
  FieldValue (*of)(const ResolvedSample&) = nullptr;
};

std::span<const OwnValue> own_values();
// By "comm" or "sample.comm"; null: there is none.
const OwnValue* find_own_value(std::string_view name);
// Whether `name` can only mean these.
bool is_own_name(std::string_view name);
// "comm, pid, tid, ...", for messages.
std::string own_value_names();

__extension__ using Int128 = __int128;  // both kinds of 64-bit numbers, and the sum or product of two

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

// Whole numbers stay whole, but for a quotient that is not. Nothing in, nothing out; but `true || nothing` is
// true and `false && nothing` is false. What has no result (a division by 0, a text and a number) is nothing.
ExpressionValue apply(cli::Operation operation, const ExpressionValue& left, const ExpressionValue& right);

}  // namespace tacho::report
