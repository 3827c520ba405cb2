// tacho report: samples counted by thread, module and function.
#pragma once

#include "report/command.h"

namespace tacho::report {

struct ReportOptions;

// What the options ask of each other and of reading; the first step of both forms.
Result<> prepare_report(ReportOptions& options);
// The text, or what --stats, --tasks and --dump-raw-trace print in its place.
Result<cli::ExitStatus> print_report(ReportOptions& options);
// The line for a capture without rows; empty: something is damaged, which is said anyway.
std::string no_rows_note(Session& session, const ReportOptions& options);

}  // namespace tacho::report
