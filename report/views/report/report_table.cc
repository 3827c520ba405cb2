#include "report/views/report/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "cli/nearest.h"
#include "report/profile/entries.h"
#include "report/profile/hierarchy.h"
#include "report/profile/name_pattern.h"
#include "report/views/report/row_filters.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Whether a CPU waits for work in this function of the kernel: perf's list (symbol__is_idle() of perf 6.1),
// with the names since Linux 6.6.
bool is_idle(const Function& function) {
  static constexpr std::string_view kIdle[] = {"acpi_idle_do_entry",
                                               "acpi_processor_ffh_cstate_enter",
                                               "acpi_safe_halt",
                                               "arch_cpu_idle",
                                               "cpu_idle",
                                               "cpu_startup_entry",
                                               "default_idle",
                                               "enter_idle",
                                               "exit_idle",
                                               "idle_cpu",
                                               "intel_idle",
                                               "intel_idle_ibrs",
                                               "mwait_idle",
                                               "mwait_idle_with_hints",
                                               "mwait_idle_with_hints.constprop.0",
                                               "native_safe_halt",
                                               "poll_idle",
                                               "ppc64_runlatch_off",
                                               "pseries_dedicated_idle_sleep",
                                               "psw_idle",
                                               "psw_idle_exit",
                                               "pv_native_safe_halt"};
  const symbolize::Module* const module = function.module;
  return module != nullptr && module->kind == symbolize::ModuleKind::Kernel &&
         std::ranges::binary_search(kIdle, function.name());
}

}  // namespace

bool ReportTable::borrows_chains(const EventBlock& block) const {
  return options_->shows_other_chains &&
         !session_->events()[block.leader].attr.samples(abi::kSampleCallchain);
}

EntryOptions ReportTable::entry_options(BlockId block) const {
  EntryOptions options;
  FunctionTable& functions = this->functions();
  options.borrows_chains = borrows_chains(profile().blocks()[block]);
  options.keeps_zero_periods = options_->reading.perf_bytes.keeps_zero_periods;
  options.has_children = plan_->has_children;
  options.pool = &session_->pool();
  if (plan_->has_graph) options.graph = plan_->graph.order;
  if (plan_->names_chains_late)
    options.late = {&*plan_->stacks, plan_->graph.min_percent, options_->look.is_relative};
  options.hides_unknown = options_->hides_unknown;
  options.counts_modes = options_->has_levels || columns().shows_modes();
  options.first_member = static_cast<std::size_t>(options_->first_member);
  constexpr std::string_view kUsualParent = "^sys_|^do_page_fault";
  if (plan_->has_key_of(KeyOf::Chain))
    options.is_parent = test_of_name(options_->chains.parent.value_or(std::string(kUsualParent)));
  options.shows_only_with_parent = options_->chains.parent && options_->chains.has_parent_only;
  if (!options_->chains.ignored_callees.empty())
    options.is_root = test_of_name(options_->chains.ignored_callees);
  options.filtered_by =
      row_filter(options_->filter, {.profile = &profile(),
                                    .resolver = &session_->resolver(),
                                    .functions = &functions,
                                    .branches = plan_->branches ? &*plan_->branches : nullptr,
                                    .socket_fact = plan_->socket_fact,
                                    .parallelism_fact = plan_->parallelism_fact});
  options.keeps_filtered = options_->has_levels;
  if (options_->view.hides_idle)
    options.is_left_out = [&functions](const ProfileRow& row) {
      return is_idle(functions[functions.of_location(row.location)]);
    };
  if (!plan_->branches) return options;
  const auto is_unknown = [&functions](LocationId location) {
    return !functions[functions.of_location(location)].has_symbol();
  };
  options.level_of = [this](std::span<const std::uint64_t> facts) {
    return plan_->branches->known(facts).level;
  };
  if (!options_->hides_unknown) return options;
  options.is_left_out = [this, is_unknown](const ProfileRow& row) {
    const BranchRows::Known branch = plan_->branches->known(profile().facts(row));
    return is_unknown(branch.own) || is_unknown(branch.from);
  };
  return options;
}

TextOptions ReportTable::text_options() const {
  TextOptions text;
  static_cast<RowLook&>(text) = options_->look;
  text.names = options_->reading.names;
  text.has_colour = has_colour_;
  text.has_children = plan_->has_children;
  text.has_groups = options_->grouping == Grouping::Always ||
                    (options_->grouping == Grouping::AsRecorded && !plan_->groups.empty());
  text.room = text.separator.empty() ? options_->reading.room() : 0;
  text.symbol_filter = options_->filter.symbol_part;
  text.leaves_out_first = options_->columns.fields.empty() && options_->columns.sort.starts_with("sym");
  if (plan_->has_graph) text.graph = plan_->graph;
  return text;
}

void ReportTable::write_single_values(TextOutput& out) const {
  const Filter& f = options_->filter;
  for (const auto& [name, list] :
       {std::pair("symbol", &f.symbols), std::pair("dso", &f.dsos), std::pair("comm", &f.comms)}) {
    if (list->size() == 1 && plan_->has_key(name))
      out.text(fmt::format("# {}: {}\n", name, printable(list->front(), options_->reading.names)));
  }
}

// Null: the output is text.
std::unique_ptr<RowForm> ReportTable::make_form(TextOutput& out, CallTree& tree,
                                                const TextOptions& text) const {
  if (!options_->is_for_programs()) return nullptr;
  const RowSource source{.session = session_,
                         .columns = &columns(),
                         .facts = &facts(),
                         .functions = &functions(),
                         .tree = &tree,
                         .input = options_->reading.session.input,
                         .text = &text,
                         .has_latency = shows_latency(columns())};
  return options_->form == ReportForm::Json ? make_json_form(out, source) : make_csv_form(out, source);
}

Result<std::optional<ReportColumns>> ReportTable::columns_of(const std::string& sort) const {
  ColumnRequest request = column_request(*options_, plan_->mode, plan_->has_children);
  request.given.sort = sort;
  request.given.fields.clear();
  auto made = make_columns(request, facts());
  if (!made) return std::move(made.error());
  for (KeyUse& use : made->keys) {
    if (use.key->distinguishes_addresses() || use.key->of == KeyOf::Chain || use.key->has_mapped_bytes)
      return std::optional<ReportColumns>();
    if (use.key->read == nullptr) continue;
    const auto known =
        std::ranges::find_if(columns().keys, [&use](const KeyUse& one) { return is_same_key(one, use); });
    if (known == columns().keys.end()) return std::optional<ReportColumns>();
    use.fact = known->fact;
  }
  return std::optional<ReportColumns>(std::move(*made));
}

// Rows of all blocks share these.
struct ReportTable::Writer {
  Writer(const ReportTable& of, TextOutput& to)
      : out(to),
        options(of.text_options()),
        index(of.columns().keys, of.facts(), of.functions()),
        tree(of.functions().functions(), of.plan_->graph.key,
             of.plan_->history.shows_counts ? &of.plan_->branch_chains->steps() : nullptr,
             of.options_->reading.perf_bytes.orders_siblings ? SiblingOrder::AsPerf : SiblingOrder::ByName),
        text(options, of.columns(), single_value_columns(of.options_->filter, of.columns()), of.facts(), tree,
             of.session().pool()),
        levels(options, of.columns(), of.facts(), tree),
        form(of.make_form(to, tree, options)) {}

  TextOutput& out;
  const TextOptions options;
  EntryIndex index;
  CallTree tree;
  const ReportText text;
  const HierarchyText levels;
  const std::unique_ptr<RowForm> form;  // null: the output is text
  BranchStatistics statistics;
};

void ReportTable::write(TextOutput& out) const {
  // Naming the remaining chains needs the functions' tables.
  plan_->names->end(plan_->mode != ReportMode::Samples || plan_->names_chains_late);
  plan_->profile->end_lookups();
  Writer to(*this, out);
  if (to.form) to.form->begin_rows();
  for (const BlockId block : profile().blocks().ids())
    if (!profile().rows_of(block).empty()) write_block(to, block);
  if (to.form) return to.form->end_rows();
  if (!options_->look.is_quiet && options_->columns.sort.empty() && !options_->chains.parent) {
    out.text("#\n# (Tip: call chains become a flame graph with: tacho flamegraph -i FILE -o FILE.svg)\n#\n");
  } else if (!options_->look.is_quiet) {
    out.text("#\n#\n");
  }
  if (options_->shows_thread_values)
    values_->write(out, *session_, options_->reading.names, options_->value_form);
  to.statistics.write(out);
}

void ReportTable::write_block(Writer& to, BlockId block) const {
  EntryOptions by_weight = entry_options(block);
  // Rows weighted by latency are the same rows in the same order.
  std::optional<Entries> latency;
  if (shows_latency(columns())) {
    EntryOptions by_latency = by_weight;
    by_latency.weighed_by = weighed_by_latency(profile(), plan_->parallelism_fact);
    latency.emplace(names(), block, to.index, std::move(by_latency));
  }
  by_weight.latency = latency ? &*latency : nullptr;
  const Entries entries(names(), block, to.index, by_weight);
  functions().show_parameters();
  std::uint64_t samples = 0;
  for (std::size_t member = 0; member < entries.members(); ++member) samples += entries.total(member).samples;
  if (samples == 0) return;
  const EventBlock& events = profile().blocks()[block];
  if (to.form) {
    const FullValues totals = to.text.full_values(entries);
    const auto rows = to.text.shown_rows(entries, totals.weights[0]);
    return to.form->write({.events = &events, .entries = &entries, .rows = rows, .totals = &totals});
  }
  const bool has_levels = options_->has_levels && !plan_->cycles;
  if (!has_levels && !options_->look.is_quiet) write_title(to.out, events, entries, nullptr);
  if (plan_->cycles) {
    const auto rows = entries.sorted(columns().sorted);
    write_blocks(to.out, entries, rows, *plan_->cycles, session_->resolver(), to.options);
    return count_branches(entries, to.statistics);
  }
  if (has_levels)
    write_levels(to.out, events, entries, to.levels);
  else
    to.text.write(to.out, entries, events.leader);
  if (plan_->branches) count_branches(entries, to.statistics);
  to.out.text("\n\n");
}

// As perf, which counts the first branch of a row for all its branches.
void ReportTable::count_branches(const Entries& entries, BranchStatistics& statistics) const {
  Resolver& resolver = session_->resolver();
  for (const EntryId entry : entries.ids()) {
    const BranchRows::Known branch = plan_->branches->known(entries.facts(entry).facts);
    std::uint64_t count = 0;
    for (std::size_t member = 0; member < entries.members(); ++member)
      count += entries.totals(entry, member).self.samples;
    statistics.add_branch(resolver.location(branch.from).ip.value, resolver.location(branch.to).ip.value,
                          branch_type(branch.type_flags), count);
  }
}

void ReportTable::write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                               const HierarchyText& text) const {
  const HierarchyPlan plan = text.plan(block.leader, block.members);
  HierarchyOptions options{.levels = plan.levels,
                           .sorted = columns().sorted,
                           .filters = filters_of(options_->filter),
                           .is_symbol_shown = {}};
  if (!options_->filter.symbol_part.empty()) {
    options.is_symbol_shown = [&part = options_->filter.symbol_part](const Function& function) {
      return function.shown_name().find(part) != std::string_view::npos;
    };
  }
  const Hierarchy hierarchy(entries, columns().keys, facts(), std::move(options));
  if (!options_->look.is_quiet) write_title(out, block, entries, &hierarchy);
  text.write(out, entries, hierarchy, plan);
}

ReportTable::Title ReportTable::title(const EventBlock& block, const Entries& entries,
                                      bool is_relative) const {
  std::uint64_t samples = 0, total = 0;
  std::string names;
  for (std::size_t member = 0; member < entries.members(); ++member) {
    const Weight all = entries.total(member);
    const Weight filtered = is_relative ? entries.filtered(member) : Weight();
    samples += all.samples - filtered.samples;
    total += entries.whole(member, is_relative);
    if (member > 0) names += ", ";
    names += session_->events()[block.leader + member].name;
  }
  char unit = ' ';
  for (const char larger : {'K', 'M', 'G'}) {
    if (samples <= 1000) break;
    samples /= 1000;
    unit = larger;
  }
  // perf says "events" for the first event of a group, even if it is shown alone.
  const format::EventGroup* const group = group_of(block.leader);
  if (entries.members() > 1 && !group->name.empty()) {
    const std::string& name = group->name == "{anon_group}" ? std::string("anon group") : group->name;
    names = name + " { " + names + " }";
  }
  std::string times;
  if (!options_->view.shown_times.empty())
    times = " (" + options_->view.shown_times + ")";
  else if (!options_->filter.time_text.empty())
    times = " (time slices: " + printable(options_->filter.time_text) + ")";
  if (options_->shows_other_chains && names.find("call-graph=no") != std::string::npos)
    times += ", show reference callgraph";
  return {fmt::format("Samples: {}{} of event{} '{}'{}", samples, unit, group != nullptr ? "s" : "",
                      printable(names, options_->reading.names), times),
          fmt::format("Event count (approx.): {}", total)};
}

// `hierarchy`: null if rows have no levels.
void ReportTable::write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                              const Hierarchy* hierarchy) const {
  std::uint64_t total = 0;
  for (std::size_t member = 0; member < entries.members(); ++member)
    total += hierarchy != nullptr ? hierarchy->total(member, options_->look.is_relative)
                                  : entries.whole(member, options_->look.is_relative);
  out.text("# " + title(block, entries, options_->look.is_relative).samples + "\n");
  if (plan_->mode == ReportMode::Memory) {
    const std::string_view sort = columns().sort.empty() ? kMemorySort : columns().sort;
    out.text(fmt::format("# Total weight : {}\n# Sort order   : {}\n", total,
                         printable(sort, options_->reading.names)));
  } else {
    out.text(fmt::format("# Event count (approx.): {}\n", total));
  }
  if (options_->filter.socket) out.text(fmt::format("# Processor Socket: {}\n", *options_->filter.socket));
  out.text("#\n");
}

const format::EventGroup* ReportTable::group_of(std::size_t leader) const {
  const auto found = std::ranges::lower_bound(plan_->groups, leader, {}, &format::EventGroup::leader);
  return found == plan_->groups.end() || found->leader != leader ? nullptr : &*found;
}

std::vector<std::string> ReportTable::unmatched_names() const {
  struct NameFilter {
    std::string_view option, what;
    const std::vector<std::string>* wanted;
    std::set<std::string> known;
  };
  const Filter& filter = options_->filter;
  std::array<NameFilter, 3> all = {{{"--comms", "command", &filter.comms, {}},
                                    {"--dsos", "DSO", &filter.dsos, {}},
                                    {"--symbols", "symbol", &filter.symbols, {}}}};
  std::vector<std::string> lines;
  const bool has_any = std::ranges::any_of(all, [](const NameFilter& one) { return !one.wanted->empty(); });
  if (!has_any || profile().rows().size() == 0) return lines;
  for (const RowId row : profile().rows().ids()) {
    const Function& function = functions()[names()[row].function];
    if (!filter.comms.empty()) all[0].known.emplace(profile().rows()[row].comm());
    if (!filter.dsos.empty() && function.module != nullptr) {
      all[1].known.emplace(function.module->short_name);
      all[1].known.emplace(function.module->path);
    }
    if (filter.symbols.empty()) continue;
    all[2].known.emplace(function.name());
    all[2].known.emplace(function.shown_name());
  }
  for (const NameFilter& one : all) {
    const std::vector<std::string> known(one.known.begin(), one.known.end());
    for (const std::string& wanted : *one.wanted) {
      if (one.known.contains(wanted) || (wanted.starts_with("0x") && &one == &all[2])) continue;
      lines.push_back(fmt::format("tacho report: {}: no sample is of the {} '{}'{}", one.option, one.what,
                                  printable(wanted), printable(cli::suggestion(wanted, known))));
    }
  }
  return lines;
}

}  // namespace tacho::report
