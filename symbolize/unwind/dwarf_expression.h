// Evaluates DWARF expressions of call frame information.
#pragma once

#include <cstdint>
#include <optional>

#include "format/base/cursor.h"

namespace tacho::symbolize {

// The frame an expression is evaluated in.
class ExpressionContext {
 public:
  // By DWARF's number. Nothing when the register is not known.
  virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  // The eight bytes at a runtime address. Nothing when nothing is mapped there.
  virtual std::optional<std::uint64_t> memory(std::uint64_t address) const = 0;

 protected:
  ~ExpressionContext() = default;
};

struct ExpressionResult {
  std::uint64_t value = 0;   // an address, or the number of a register
  bool is_register = false;  // the expression names a register instead of an address
};

// Evaluates `expression` on a stack that holds `initial`. Nothing when it is malformed, needs what the frame
// does not have, or does not end within a bounded number of steps.
std::optional<ExpressionResult> evaluate_expression(format::Bytes expression, std::uint64_t initial,
                                                    const ExpressionContext& frame,
                                                    std::endian order = std::endian::little);

}  // namespace tacho::symbolize
