// A distribution as rows with bars, in the form that bcc's tools print.
#pragma once

#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/distribution.h"

namespace tacho::report {

// `label` heads the column of values: "bytes", "latency (ns)". Of very many rows the last ones are left out;
// in the place of what is left out stands a line that says so.
void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets);

}  // namespace tacho::report
