// Latency: the part of the time that passed which a sample stands for. Where N threads of a command ran at
// once, each second of processor time was a N-th of a second that somebody waited.
#pragma once

#include <cstddef>

#include "format/base/result.h"
#include "report/profile/entries.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// Whether records of context switches are asked for, which is known before the columns are.
bool asks_for_parallelism(const ReportOptions& options);
bool shows_latency(const ReportColumns& columns);
// An error, where the capture has no context switches and something wants them.
Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options);

// What a row counts for in latency. `fact`: where its parallelism stands among the facts. The profile must
// outlive it.
std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact);

}  // namespace tacho::report
