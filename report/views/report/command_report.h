// tacho report: samples counted by thread, module and function.
#pragma once

#include "report/command.h"

namespace tacho::report {

struct ReportOptions;

// Checks and completes the options, before the text and the terminal view alike.
Result<> prepare_report(ReportOptions& options);
// Prints the report, or what --stats, --tasks or --dump-raw-trace print instead.
Result<cli::ExitStatus> print_report(ReportOptions& options);
// The line for a capture without rows; empty: there was damage, which is reported anyway.
std::string no_rows_note(Session& session, const ReportOptions& options);

}  // namespace tacho::report
