// Values that are counted one by one (texts, named numbers): a table with the most frequent ones first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"

namespace tacho::report {

struct ValueCount {
  std::string value;  // as it is shown
  std::uint64_t count = 0;
};

// Rows "count  share  value" below a line of headers, in the order given; at most `top` of them (0: all).
// What was left out is counted in a last line. Shares are of `total`, which is not 0. `room`: columns that a
// row has; 0: no limit.
void write_values(TextBuffer& out, std::string_view label, const std::vector<ValueCount>& rows,
                  std::uint64_t total, std::size_t top, std::size_t room);

}  // namespace tacho::report
