// Registers as perf numbers them in samples, by the machine that recorded.
#pragma once

#include <string>
#include <string_view>

namespace tacho::report {

// "AX", "lr"; "unknown" for numbers and machines that have no name. `arch` as in the capture's header:
// "x86_64", "aarch64".
std::string register_name(std::string_view arch, unsigned number);

}  // namespace tacho::report
