// What a capture and the options decide together: what rows count, and what is needed for them.
#pragma once

#include <cstddef>
#include <functional>

#include "format/base/result.h"
#include "report/profile/profile.h"
#include "report/samples/session.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// What the rows of a report count.
ReportMode mode_of(const Session& session, const ReportOptions& options);

// An error if options contradict each other, or the capture lacks what they need.
Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode);

// Whether the processor recorded all branches, not only some kinds.
bool keeps_every_branch(const Session& session);

// What --branch-history and -g branch show of a capture.
struct BranchHistory {
  bool is_wanted = false;     // call chains contain branches
  bool shows_counts = false;  // graphs show prediction, cycles and iterations of branches
};
BranchHistory branch_history_of(const Session& session, const ReportOptions& options);

// Whether an option needs records of context switches, as far as options tell before there are columns.
bool asks_for_parallelism(const ReportOptions& options);
// Whether sort keys, columns or call graphs have source lines.
bool needs_source_lines(const ReportOptions& options);
// An error if an option needs context switches and the capture has none.
Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options);

// The weight of a row by latency (perf report --latency): while N threads of a command run at once, a second
// of CPU time is 1/N second of latency. `fact`: the position of its parallelism in the facts. The profile
// must outlive the result.
std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact);

}  // namespace tacho::report
