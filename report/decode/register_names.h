// Registers as perf numbers them in samples, by the machine that recorded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tacho::report {

// "AX", "lr"; "unknown" for numbers and machines that have no name. `arch` as in the capture's header:
// "x86_64", "aarch64".
std::string register_name(std::string_view arch, unsigned number);

// Whose registers they are: the machine that a capture names, or else this one, as perf has it.
std::string register_machine(const std::optional<std::string>& recorded);

}  // namespace tacho::report
