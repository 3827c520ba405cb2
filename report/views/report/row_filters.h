// Which rows of a report its filters refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "report/profile/branch_rows.h"
#include "report/profile/entries.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/samples/filter.h"
#include "report/views/report/report_columns.h"

namespace tacho::report {

// Rows of refused samples are hidden, but count in the total (100 %).
struct RowFilters : Filter {
  std::optional<std::uint32_t> socket;     // --socket-filter
  std::vector<std::uint32_t> parallelism;  // --parallelism; empty: any
};

// The rows that filters test, and where the tested values are in their facts.
struct FilteredRows {
  const Profile* profile = nullptr;
  Resolver* resolver = nullptr;
  FunctionTable* functions = nullptr;
  const BranchRows* branches = nullptr;  // null: rows are not of branches
  std::size_t socket_fact = 0, parallelism_fact = 0;
};

// All filters that may refuse a row.
FilterBits filters_of(const RowFilters& filters);
// The filters that refuse a row; null: there are no filters. The arguments must outlive the result.
std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const RowFilters& filters,
                                                                         const FilteredRows& rows);
// perf hides a column if a filter leaves it a single value.
std::vector<Column> single_value_columns(const Filter& filter, const ReportColumns& columns);

}  // namespace tacho::report
