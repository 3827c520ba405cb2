// Strings that tracepoints of the kernel record by their address: printk_formats of tracefs, as captures
// carry it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::format {

// Lines `0xffffffff82000010 : "text"`, by address. Texts are kept as libtraceevent keeps them: escapes stay,
// an end of line at the end of a text does not.
class ConstantStrings {
 public:
  ConstantStrings() = default;
  explicit ConstantStrings(std::string_view printk_formats);
  // Null when no string has that address. Of several the first counts.
  const std::string* find(std::uint64_t address) const;
  struct Row {
    std::uint64_t address = 0;
    std::string text;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;  // by address, each once
};

}  // namespace tacho::format
