// tacho-report prototypes (internal): types of arguments and return values of functions, from DWARF.
// tacho-record, which has no DWARF reader, runs it and attaches the output to the capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

// Arguments FILE OFFSET...: the functions at these offsets of FILE. Prints the lines of
// report/decode/prototype_text.h, without functions that have no debug information; or one line, "error" with
// the reason, or "too-long" when the output would exceed 1 MB.
Result<cli::ExitStatus> run_prototypes(const std::vector<std::string>& arguments);

}  // namespace tacho::report
