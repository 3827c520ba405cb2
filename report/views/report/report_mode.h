// What the rows of a report count, by its options and by what the capture holds.
#pragma once

#include "report/profile/sample_facts.h"
#include "report/samples/session.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

ReportMode mode_of(const Session& session, const ReportOptions& options);

// An error names an option that the capture has nothing for.
Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode);

// Whether the processor kept every branch, and not those of some kinds alone.
bool keeps_every_branch(const Session& session);

// What --branch-history and -g branch make of a capture.
struct BranchHistory {
  bool is_wanted = false;     // chains have branches in them
  bool shows_counts = false;  // graphs say how these went
};
BranchHistory branch_history_of(const Session& session, const ReportOptions& options);

}  // namespace tacho::report
