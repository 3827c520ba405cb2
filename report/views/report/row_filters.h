// Which rows of a report its options refuse, and the columns that they leave one value.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "report/profile/branch_rows.h"
#include "report/profile/entries.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// Where the rows come from, and where among their facts stands what filters look at.
struct FilteredRows {
  const Profile* profile = nullptr;
  Resolver* resolver = nullptr;
  FunctionTable* functions = nullptr;
  const BranchRows* branches = nullptr;  // null: rows are not of branches
  std::size_t socket_fact = 0, parallelism_fact = 0;
};

// All that may refuse a row.
FilterBits filters_of(const ReportOptions& options);
// Which do; null: there are none. What is passed must outlive it.
std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const ReportOptions& options,
                                                                         const FilteredRows& rows);
// perf does not show a column whose value a filter leaves no choice.
std::vector<Column> single_value_columns(const ReportOptions& options, const ReportColumns& columns);

}  // namespace tacho::report
