// tacho-report parameters (internal): the locations of a function's arguments at its entry, from DWARF.
// tacho-record, which has no DWARF reader, runs it and parses the lines.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

// Arguments FILE OFFSET SYMBOL NAME...: the function at OFFSET of FILE, whose ELF symbol is SYMBOL. Prints
// for each NAME
//   value REGISTER SHIFT BYTES unsigned|signed|pointer|text register|memory|address DISPLACEMENT POINTER...
// (symbolize/elf/function_parameters.h), or one line: "error" and why.
Result<cli::ExitStatus> run_parameters(const std::vector<std::string>& arguments);

}  // namespace tacho::report
