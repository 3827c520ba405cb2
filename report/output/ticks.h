// Round numbers for axes: 1, 2 or 5 times a power of ten; of bytes powers of two. browser/ticks.js has the
// same.
#pragma once

#include <vector>

namespace tacho::report {

// The least of 1, 2, 5, 10, 20, ... that is not below.
double round_step(double least);
// From the lowest; about `most`.
std::vector<double> linear_ticks(double from, double to, double most);
// Those to be shown first stand first: powers of ten before 5 and 2 times these, powers of 1024 before others
// of two.
std::vector<double> log_ticks(double from, double to, bool is_bytes);

}  // namespace tacho::report
