// Options of perf report that tacho report does not have, and what to do instead.
#pragma once

#include <span>

#include "cli/absent_options.h"

namespace tacho::report {

std::span<const cli::AbsentOption> absent_report_options();

}  // namespace tacho::report
