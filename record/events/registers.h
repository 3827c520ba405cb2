// Registers as perf numbers them in samples: a bit each of sample_regs_user and sample_regs_intr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/result.h"

namespace tacho::record {

// Every register that the kernel of this machine gives for a sample; 0 where none is known here.
std::uint64_t all_registers();
// Their names, separated by blanks: "AX BX CX ...".
std::string register_names();
// "ip,sp": any case. An error gives the names there are.
Result<std::uint64_t> parse_registers(std::string_view text);

}  // namespace tacho::record
