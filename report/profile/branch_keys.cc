// Sort keys of branches: where they came from and went to, and how.
#include <fmt/format.h>

#include <functional>

#include "report/decode/coded_values.h"
#include "report/profile/sort_keys.h"
#include "report/samples/index_table.h"

namespace tacho::report {
namespace {

using Fit = SortKey::Fit;

// An end's fact is its location, with the level of the sample above it: one key shows that.
constexpr unsigned kLevelAt = 32;

std::uint64_t read_from(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  return facts.branch.from;
}
std::uint64_t read_to(const KeyUse&, SampleFacts& facts, const ResolvedSample&) { return facts.branch.to; }
std::uint64_t with_level(std::uint64_t location, char level) {
  return location | std::uint64_t{static_cast<unsigned char>(level)} << kLevelAt;
}
template <std::uint64_t Mask, unsigned At = 0>
std::uint64_t read_flags(const KeyUse&, SampleFacts& facts, const ResolvedSample&) {
  return facts.branch.flags >> At & Mask;
}

OtherPlace end_of(Show show, Row row) { return place_at(show, show.fact(row)); }

std::uint64_t end_identity(Show show, Row row) {
  const OtherPlace end = end_of(show, row);
  const auto& one = show.facts.one_of_several;
  return end.has_name() ? one(1, end.function->start, end.function->end()) : one(2, end.location->ip.value);
}
// By place; what has no name comes last.
Order end_order(Show show, Row a, Row b) {
  const OtherPlace end_a = end_of(show, a), end_b = end_of(show, b);
  if (end_a.has_name() != end_b.has_name()) return end_a.has_name() ? Order::less : Order::greater;
  if (!end_a.has_name()) return address_order(end_a.location->ip.value, end_b.location->ip.value);
  const auto order = address_order(end_a.function->start, end_b.function->start);
  return order != 0 ? order : address_order(end_a.function->end(), end_b.function->end());
}
std::string show_end_in(Show show, Row row, std::size_t width) {
  const OtherPlace end = end_of(show, row);
  return show_place(show, end, end.address, end.level, width);
}
std::string show_end(Show show, Row row) { return show_end_in(show, row, kAnyWidth); }

std::uint64_t module_number_of(Show show, const OtherPlace& end) {
  return show.facts.options().is_verbose ? end.function->module_rank : end.function->module_number;
}
std::uint64_t end_module_identity(Show show, Row row) { return module_number_of(show, end_of(show, row)); }
Order end_module_order(Show show, Row a, Row b) {
  return module_order_down(show, end_of(show, a), end_of(show, b));
}
std::size_t end_module_width(Show show, Row row) {
  const OtherPlace end = end_of(show, row);
  if (end.has_name()) return show_place_module(show, end).size();
  return show.facts.options().widens_unknown ? kAddressWidth : 0;
}

std::uint64_t end_address_identity(Show show, Row row) {
  const OtherPlace end = end_of(show, row);
  return show.facts.one_of_several(module_number_of(show, end), end.location->ip.value);
}
Order end_address_order(Show show, Row a, Row b) {
  const OtherPlace end_a = end_of(show, a), end_b = end_of(show, b);
  const auto order = module_order_down(show, end_a, end_b);
  return order != 0 ? order : address_order(end_a.location->ip.value, end_b.location->ip.value);
}
// perf cuts the name so that it fits into the column without the offset.
std::string show_end_address_in(Show show, Row row, std::size_t width) {
  const OtherPlace end = end_of(show, row);
  const auto level = static_cast<char>(show.fact(row) >> kLevelAt);
  std::string text = fmt::format("[{}] ", level);
  if (!end.has_name()) return text + fmt::format("{}{:016x}", end.address == 0 ? "" : "0x", end.address);
  add_name(text, shown(show, end.function->name()), end.function->is_data ? kAnyWidth : width);
  const std::uint64_t offset = end.address - end.function->start;
  if (end.function->is_data) return text + fmt::format("+0x{:x}", end.address - end.runtime_start());
  return offset == 0 ? text : text + fmt::format("+0x{:x}", offset);
}
std::string show_end_address(Show show, Row row) { return show_end_address_in(show, row, kAnyWidth); }
std::size_t end_address_width(Show show, Row row) { return end_of(show, row).has_name() ? 0 : kUnknownWidth; }

std::string end_line(Show show, Row row) { return line_of(show, *end_of(show, row).function); }
std::uint64_t end_line_identity(Show show, Row row) { return std::hash<std::string>()(end_line(show, row)); }
Order end_line_order(Show show, Row a, Row b) { return end_line(show, a) <=> end_line(show, b); }

std::string show_cycles(Show show, Row row) {
  const std::uint64_t cycles = show.fact(row);
  return cycles == 0 ? "-" : std::to_string(static_cast<std::int16_t>(cycles));  // as perf prints them
}

std::string show_prediction(Show show, Row row) {
  const std::uint64_t flags = show.fact(row);
  if ((flags & kBranchPredicted) != 0) return "N";
  return (flags & kBranchMispredicted) != 0 ? "Y" : "N/A";
}

constexpr SortKey kBranchKeys[] = {
    {.name = "dso_from",
     .header = "Source Shared Object",
     .help = "the file or module that the branch was taken from",
     .read = read_from,
     .identity = end_module_identity,
     .order = end_module_order,
     .show = [](Show show, Row row) { return show_place_module(show, end_of(show, row)); },
     .width = end_module_width,
     .mode = ReportMode::Branches},
    {.name = "dso_to",
     .header = "Target Shared Object",
     .help = "the one that it went to",
     .read = read_to,
     .identity = end_module_identity,
     .order = end_module_order,
     .show = [](Show show, Row row) { return show_place_module(show, end_of(show, row)); },
     .width = end_module_width,
     .mode = ReportMode::Branches},
    {.name = "symbol_from",
     .header = "Source Symbol",
     .help = "the function that the branch was taken from",
     .read = read_from,
     .identity = end_identity,
     .order = end_order,
     .show = show_end,
     .show_in = show_end_in,
     .width = [](Show show, Row row) { return place_width(show, end_of(show, row)); },
     .fit = Fit::Whole,
     .mode = ReportMode::Branches},
    {.name = "symbol_to",
     .header = "Target Symbol",
     .help = "the one that it went to",
     .read = read_to,
     .identity = end_identity,
     .order = end_order,
     .show = show_end,
     .show_in = show_end_in,
     .width = [](Show show, Row row) { return place_width(show, end_of(show, row)); },
     .fit = Fit::Whole,
     .mode = ReportMode::Branches},
    {.name = "mispredict",
     .header = "Branch Mispredicted",
     .help = "whether the processor expected another way: Y, N",
     .read = read_flags<kBranchMispredicted | kBranchPredicted>,
     .identity = fact_of,
     .order = by_fact_down,
     .show = show_prediction,
     .mode = ReportMode::Branches},
    {.name = "abort",
     .header = "Transaction abort",
     .help = "whether it was a transaction's end by force: A",
     .read = read_flags<kBranchAborted>,
     .identity = fact_of,
     .order = by_fact,
     .show = [](Show show, Row row) { return std::string(show.fact(row) != 0 ? "A" : "."); },
     .fit = Fit::Padded,
     .mode = ReportMode::Branches},
    {.name = "in_tx",
     .header = "Branch in transaction",
     .help = "whether it was taken inside a transaction: T",
     .read = read_flags<kBranchInTransaction>,
     .identity = fact_of,
     .order = by_fact,
     .show = [](Show show, Row row) { return std::string(show.fact(row) != 0 ? "T" : "."); },
     .fit = Fit::Padded,
     .mode = ReportMode::Branches},
    {.name = "cycles",
     .header = "Basic Block Cycles",
     .help = "cycles since the branch before",
     .read = read_flags<kBranchCyclesMask, kBranchCyclesAt>,
     .identity = fact_of,
     .order = by_fact_down,
     .show = show_cycles,
     .fit = Fit::Padded,
     .mode = ReportMode::Branches},
    {.name = "srcline_from",
     .header = "From Source:Line",
     .help = "the line of the source that the branch was taken from",
     .read = read_from,
     .identity = end_line_identity,
     .order = end_line_order,
     .show = end_line,
     .mode = ReportMode::Branches,
     .has_lines = true},
    {.name = "srcline_to",
     .header = "To Source:Line",
     .help = "the one that it went to",
     .read = read_to,
     .identity = end_line_identity,
     .order = end_line_order,
     .show = end_line,
     .mode = ReportMode::Branches,
     .has_lines = true},
    {.name = "ipc_lbr",
     .header = "IPC   [IPC Coverage]",
     .help = "instructions a cycle in the function that it went to",
     .of = KeyOf::Function,
     .identity = symbol_identity,
     .order = symbol_order,
     .ordered_by = symbol_ordered_by,
     .show = [](Show, Row row) { return std::string(row.function->name().empty() ? "-" : "0.00  [  0.0%]"); },
     .fit = Fit::Padded,
     .mode = ReportMode::Branches},
    {.name = "addr_from",
     .header = "Source Address",
     .help = "the address that the branch was taken from",
     .read = [](const KeyUse&, SampleFacts& facts,
                const ResolvedSample&) { return with_level(facts.branch.from, facts.branch.level); },
     .identity = end_address_identity,
     .order = end_address_order,
     .show = show_end_address,
     .show_in = show_end_address_in,
     .width = end_address_width,
     .fit = Fit::Whole,
     .mode = ReportMode::Branches},
    {.name = "addr_to",
     .header = "Target Address",
     .help = "the one that it went to",
     .read = [](const KeyUse&, SampleFacts& facts,
                const ResolvedSample&) { return with_level(facts.branch.to, facts.branch.level); },
     .identity = end_address_identity,
     .order = end_address_order,
     .show = show_end_address,
     .show_in = show_end_address_in,
     .width = end_address_width,
     .fit = Fit::Whole,
     .mode = ReportMode::Branches},
};

}  // namespace

std::span<const SortKey> branch_keys() { return kBranchKeys; }

}  // namespace tacho::report
