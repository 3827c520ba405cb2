// Parser of /tmp/perf-PID.map, the symbols that a JIT compiler writes for its code, one line each:
//   START SIZE name, blanks allowed      (hexadecimal)
#pragma once

#include <cstddef>
#include <vector>

#include "format/base/result.h"
#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {

// Addresses are runtime addresses. Lines of another form are skipped; an error when not one has the form.
Result<SymbolTable> parse_perf_map(std::vector<std::byte> text);

}  // namespace tacho::symbolize
