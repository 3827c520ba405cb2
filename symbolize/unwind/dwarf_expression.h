// Evaluates DWARF expressions of call frame information.
#pragma once

#include <cstdint>
#include <optional>

#include "format/base/cursor.h"

namespace tacho::symbolize {

// The frame in which an expression is evaluated.
class ExpressionContext {
 public:
  // By DWARF number. Nothing: the register is unknown.
  virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  // The eight bytes at a runtime address. Nothing: not mapped.
  virtual std::optional<std::uint64_t> memory(std::uint64_t address) const = 0;

 protected:
  ~ExpressionContext() = default;
};

struct ExpressionResult {
  std::uint64_t value = 0;   // an address, or a register number
  bool is_register = false;  // the result is a register
};

// Evaluates `expression` on a stack with `initial`. Nothing: it is malformed, needs an unknown register or
// memory, or exceeds the limit of steps.
std::optional<ExpressionResult> evaluate_expression(format::Bytes expression, std::uint64_t initial,
                                                    const ExpressionContext& frame,
                                                    std::endian order = std::endian::little);

}  // namespace tacho::symbolize
