// tacho-report parameters: where a function's arguments are when it begins. For tacho-record, which reads no
// debugging information itself: the two meet in the lines that are printed.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

// FILE OFFSET SYMBOL NAME...: of the function at OFFSET of FILE, which the linker calls SYMBOL. Prints for
// each NAME
//   value REGISTER SHIFT BYTES unsigned|signed|pointer|text register|memory|address DISPLACEMENT POINTER...
// (symbolize/elf/function_parameters.h), or one line: "error" and why.
Result<cli::ExitStatus> run_parameters(const std::vector<std::string>& arguments);

}  // namespace tacho::report
