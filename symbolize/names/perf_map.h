// Names of code made at run time, as its maker wrote them to /tmp/perf-PID.map, one line each:
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
