// A distribution as rows with bars, in the form that bcc's tools print.
#pragma once

#include <cstdint>
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

}  // namespace tacho::report
