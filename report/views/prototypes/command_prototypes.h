// tacho-report prototypes: what functions are called with and what they return. For tacho-record, which reads
// no debugging information itself, and puts what is printed into the capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

// FILE OFFSET...: of the functions at these places of FILE. Prints the lines of
// report/decode/prototype_text.h; none for functions that FILE's debugging information does not tell of, or
// one line: "error" and why, or "too-long" where they would be more than 1 MB.
Result<cli::ExitStatus> run_prototypes(const std::vector<std::string>& arguments);

}  // namespace tacho::report
