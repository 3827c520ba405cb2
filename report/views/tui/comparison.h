// `tacho report --base FILE` as text: the shares of two captures beside each other, as perf diff has them.
#pragma once

#include <string>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// Prints the rows of the capture of `options` and of `base`, which was before, largest change first: percent
// before and after, without callees, and the difference. Rows are matched by the texts of their keys (--sort;
// by default those of perf diff: dso,symbol).
Result<cli::ExitStatus> print_comparison(ReportOptions& options, const std::string& base);

}  // namespace tacho::report
