// A distribution as rows with bars, in the form that bcc's tools print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/distribution.h"

namespace tacho::report {

// How many rows are written at most. Steps can be any number, parts of powers are some thousand at most.
enum class Rows : std::uint8_t { Thousand, All };

// `label` heads the column of values: "bytes", "latency (ns)". Of too many rows the last ones are left out;
// in the place of what is left out stands a line that says so.
void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets,
                        Rows rows = Rows::Thousand);

// Values that are counted one by one (texts, named numbers): a table with the most frequent ones first.

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
