// tacho script: every sample as text.
#pragma once

#include <span>

#include "cli/absent_options.h"
#include "report/command.h"

namespace tacho::report {

// Options of perf script that tacho script does not have, and what to do instead.

std::span<const cli::AbsentOption> absent_script_options();

}  // namespace tacho::report
