// Prints a distribution as rows with bars, in the form of bcc's tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/distribution.h"

namespace tacho::report {

// The maximum number of rows. There can be any number of linear rows, but only some thousand logarithmic
// ones.
enum class Rows : std::uint8_t { Thousand, All };

// `label` is the heading of the values: "bytes", "latency (ns)". If there are too many rows, a line replaces
// the last ones.
void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets,
                        Rows rows = Rows::Thousand);

// A row of a table of values (texts, enums) with their counts.
struct ValueCount {
  std::string value;  // as it is printed
  std::uint64_t count = 0;
};

// Prints "count  share  value" for each row, below a heading, in the given order; at most `top` rows (0:
// all), and a last line that counts the others. Shares are of `total`, which is not 0. `room` is the width of
// a row; 0: no limit.
void write_values(TextBuffer& out, std::string_view label, const std::vector<ValueCount>& rows,
                  std::uint64_t total, std::size_t top, std::size_t room);

}  // namespace tacho::report
