#include "report/views/report/row_filters.h"

#include <algorithm>
#include <string_view>

namespace tacho::report {
namespace {

bool holds(const auto& list, const auto& item) {
  return list.empty() || std::ranges::find(list, item) != list.end();
}

}  // namespace

FilterBits filters_of(const RowFilters& f) {
  FilterBits filters = 0;
  if (!f.comms.empty() || !f.pids.empty() || !f.tids.empty()) filters |= kByThread;
  if (!f.dsos.empty()) filters |= kByModule;
  if (!f.symbols.empty()) filters |= kBySymbol;
  if (f.socket) filters |= kBySocket;
  if (!f.parallelism.empty()) filters |= kByParallelism;
  return filters;
}

std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const RowFilters& f,
                                                                         const FilteredRows& rows) {
  if (filters_of(f) == 0) return {};
  return [&f, rows, addresses = WantedAddresses(f)](const ProfileRow& row, const Function& counted) {
    const auto facts = rows.profile->facts(row);
    // A branch is filtered by the address of its sample.
    const Function& function =
        rows.branches != nullptr
            ? (*rows.functions)[rows.functions->of_location(rows.branches->known(facts).own)]
            : counted;
    const std::string_view path = function.module == nullptr ? std::string_view() : function.module->path;
    const std::string_view name =
        function.module == nullptr ? std::string_view() : function.module->short_name;
    const auto has_address = [&](const ProfileRow& of) {
      return !addresses.empty() && addresses.has(rows.resolver->location(of.location).ip.value);
    };
    FilterBits refused = 0;
    if (!holds(f.comms, row.comm()) || !holds(f.pids, row.thread->pid) || !holds(f.tids, row.thread->tid))
      refused |= kByThread;
    if (!holds(f.dsos, name) && !holds(f.dsos, path)) refused |= kByModule;
    const bool is_named = holds(f.symbols, function.name()) || holds(f.symbols, function.shown_name());
    if (!is_named && !has_address(row)) refused |= kBySymbol;
    if (f.socket && facts[rows.socket_fact] != *f.socket) refused |= kBySocket;
    if (!f.parallelism.empty() && !holds(f.parallelism, facts[rows.parallelism_fact]))
      refused |= kByParallelism;
    return refused;
  };
}

std::vector<Column> single_value_columns(const Filter& filter, const ReportColumns& columns) {
  std::vector<Column> single;
  for (const Column& column : columns.shown) {
    if (column.kind != Column::Kind::Key) continue;
    const std::string_view name = columns.keys[column.key].key->name;
    if ((name == "comm" && filter.comms.size() == 1) || (name == "dso" && filter.dsos.size() == 1) ||
        (name == "symbol" && filter.symbols.size() == 1)) {
      single.push_back(column);
    }
  }
  return single.size() == columns.keys.size() ? std::vector<Column>() : single;
}

}  // namespace tacho::report
