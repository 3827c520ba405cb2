#include "report/views/report/raw_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/profile/key_cells.h"

namespace tacho::report {
namespace {

using Kind = RawValue::Kind;

RawValue number(std::uint64_t value) { return {Kind::Number, value, {}}; }
RawValue address(std::uint64_t value) { return {Kind::Address, value, {}}; }
RawValue text(std::string_view value) { return {Kind::Text, 0, std::string(value)}; }

RawValue of_fact(Show show, Row row) { return number(show.fact(row)); }
RawValue of_flag(Show show, Row row) { return number(show.fact(row) != 0 ? 1 : 0); }
RawValue of_address(Show show, Row row) { return address(show.fact(row)); }
RawValue of_samples(Show show, Row row) { return number(show.fact(row) * row.samples); }
RawValue of_thread(Show, Row row) { return number(row.thread->tid); }
RawValue of_nothing(Show, Row) { return {}; }
// What is not known is -1 in the capture.
RawValue of_index(Show show, Row row) { return show.fact(row) == ~0U ? RawValue() : number(show.fact(row)); }
RawValue of_function(Show, Row row) {
  return row.function->name().empty() ? address(row.function->start) : text(row.function->name());
}
RawValue of_size(Show, Row row) {
  return row.function->name().empty() ? RawValue() : number(row.function->end() - row.function->start);
}
RawValue of_place(Show show, Row row) {
  const OtherPlace place = place_at(show, show.fact(row));
  return place.has_name() ? text(place.function->name()) : address(place.address);
}
RawValue of_place_address(Show show, Row row) {
  return address(place_at(show, show.fact(row)).location->ip.value);
}
// With the address in it, which distinguishes rows.
RawValue of_touched(Show show, Row row) {
  const OtherPlace place = place_at(show, show.fact(row));
  const std::uint64_t at = place.location->ip.value;
  return place.has_name() ? text(fmt::format("{}+{:#x}", place.function->name(), at - place.runtime_start()))
                          : address(at);
}
RawValue of_blocked(Show show, Row row) {
  const std::string shown = show.use.key->show(show, row);  // with a blank before each word
  return text(std::string_view(shown).substr(std::min(shown.find_first_not_of(' '), shown.size())));
}
RawValue of_prediction(Show show, Row row) {
  const std::string shown = show.use.key->show(show, row);
  return shown == "N/A" ? RawValue() : text(shown);
}

struct RawRow {
  std::string_view key;
  RawValue (*value)(Show, Row);
};

// Keys that are not here are given by their text.
constexpr RawRow kRows[] = {
    {"pid", of_thread},
    {"tid", of_thread},
    {"symbol", of_function},
    {"cpu", of_index},
    {"socket", of_index},
    {"local_weight", of_fact},
    {"weight", of_samples},
    {"transaction", of_fact},
    {"symbol_size", of_size},
    {"ipc_null", of_nothing},
    {"ipc_lbr", of_nothing},
    {"time", of_fact},
    {"code_page_size", of_fact},
    {"local_ins_lat", of_fact},
    {"ins_lat", of_samples},
    {"local_p_stage_cyc", of_fact},
    {"p_stage_cyc", of_samples},
    {"parallelism", of_fact},
    {"addr", [](Show, Row row) { return address(row.function->first_ip); }},
    {"symbol_from", of_place},
    {"symbol_to", of_place},
    {"mispredict", of_prediction},
    {"abort", of_flag},
    {"in_tx", of_flag},
    {"cycles", of_fact},
    {"addr_from", of_place_address},
    {"addr_to", of_place_address},
    {"symbol_daddr", of_touched},
    {"symbol_iaddr", of_touched},
    {"phys_daddr", of_address},
    {"blocked", of_blocked},
    {"data_page_size", of_fact},
};

}  // namespace

RawValue raw_value(const KeyUse& use, const SampleFacts& facts, const RowFacts& row) {
  const KeyShow show{use, facts};
  const auto known = std::ranges::find(kRows, use.key->name, &RawRow::key);
  if (use.field == nullptr && known != std::end(kRows)) return known->value(show, row);
  return text(use.key->show(show, row));
}

std::vector<RawColumn> raw_columns(const ReportColumns& columns) {
  std::vector<RawColumn> all;
  for (const KeyUse& use : columns.keys) {
    if (use.key->name.starts_with("ipc_")) continue;
    std::string name(use.field != nullptr ? std::string_view(use.header) : use.key->name);
    const auto is_taken = [&all](const std::string& other) {
      return std::ranges::find(all, other, &RawColumn::name) != all.end();
    };
    const std::string first = name;
    for (int next = 2; is_taken(name); ++next) name = fmt::format("{}_{}", first, next);
    all.push_back({&use, std::move(name)});
  }
  return all;
}

bool is_of_block(const KeyUse& use, const EventBlock& block) {
  return !use.event || (*use.event >= block.leader && *use.event < block.leader + block.members);
}

}  // namespace tacho::report
