#include "report/views/report/report_plan.h"

#include <algorithm>
#include <utility>

#include "report/samples/chain_sources.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

bool distinguishes_addresses(const ReportColumns& columns) {
  return std::ranges::any_of(columns.keys,
                             [](const KeyUse& use) { return use.key->distinguishes_addresses(); });
}

bool has_unwound_stacks(const Session& session) {
  return std::ranges::any_of(
      session.events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleRegsUser); });
}

FactOptions fact_options(const ReportOptions& options, ReportMode mode) {
  FactOptions facts = options.facts;
  facts.names = options.is_for_programs() ? Names::Raw : options.reading.names;
  facts.has_hex_longs = !options.is_for_programs();
  facts.is_verbose = options.is_verbose;
  facts.marks_missing = !options.reading.perf_bytes.is_asked_for;
  facts.mode = mode;
  facts.widens_unknown =
      options.look.separator.empty() && options.look.widths.empty() && options.filter.dsos.empty();
  return facts;
}

}  // namespace

ColumnRequest column_request(const ReportOptions& options, ReportMode mode, bool has_children) {
  // As in perf, blocks belong to the rows of the default sort order.
  const bool has_blocks = options.branches.shows_cycles && mode == ReportMode::Branches;
  std::string sort = has_blocks ? std::string() : options.columns.sort;
  // The text of a tracepoint, the default key, does not describe a wait.
  if (options.waits.is_asked_for && (sort.empty() || sort.front() == '+'))
    sort.replace(0, 1, sort.empty() ? "comm,dso,symbol" : "comm,dso,symbol,");
  ColumnRequest request{.given = options.columns,
                        .has_children = has_children,
                        .has_parent = options.chains.parent.has_value(),
                        .has_ipc = !options.waits.is_asked_for && !options.view.is_live};
  request.given.sort = std::move(sort);
  return request;
}

Result<std::unique_ptr<ReportPlan>> make_report_plan(Session& session, const ReportOptions& options,
                                                     ReportMode mode, bool needs_records, RecordFacts early) {
  if (auto checked = check_mode(session, options, mode); !checked) return std::move(checked.error());
  std::unique_ptr<ReportPlan> plan(new ReportPlan(session, options, mode, needs_records, std::move(early)));
  if (auto found = plan->event_switch.find_events(event_names(session.events())); !found)
    return std::move(found.error());
  if (options.first_member != 0 && plan->groups.empty())
    return use_error("--group-sort-idx: the capture has no group of events; record with -e '{A,B}'");
  if (auto chosen = plan->choose_columns(); !chosen) return std::move(chosen.error());
  if (auto made = plan->make_profile(); !made) return std::move(made.error());
  using WithModules = symbolize::Symbolizer::WithModules;
  if (!plan->needs_names())
    session.resolver().leave_names_out(plan->has_key("dso") ? WithModules::Yes : WithModules::No);
  if (!session.layout().is_pipe) plan->make_names();
  const bool keeps_zero = options.reading.perf_bytes.keeps_zero_periods;
  plan->weight.emplace(options.weight, session.events().size(), plan->facts.schemas(), keeps_zero);
  if (keeps_zero) plan->sum_shape.zero_periods = SumShape::ZeroPeriods::Keep;
  return plan;
}

ReportPlan::ReportPlan(Session& of, const ReportOptions& with, ReportMode by, bool reads_records,
                       RecordFacts early)
    : session(&of),
      options(&with),
      mode(by),
      needs_records(reads_records),
      history(branch_history_of(of, with)),
      groups(groups_of(of, with.grouping)),
      event_switch(with.switches),
      facts(of, fact_options(with, by), std::move(early)),
      graph(with.graph) {}

Result<> ReportPlan::choose_columns() {
  const bool has_stacks_of_its_own = has_stacks(session->events(), session->features());
  has_chains = mode != ReportMode::Branches && (has_stacks_of_its_own || history.shows_counts);
  // In a pipe, perf decides about call chains before it knows the events, and adds up no children.
  has_children = mode == ReportMode::Samples && options->wants_children && has_stacks_of_its_own &&
                 (!session->layout().is_pipe || options->view.is_live) && !options->has_levels;
  has_graph = has_chains && options->graph.form != GraphForm::None;
  graph.order = options->begins_with_caller() ? ChainOrder::Caller : ChainOrder::Callee;
  if (options->asks_for_graph && graph.form != GraphForm::None && !has_chains)
    return use_error("--call-graph: the capture has no call chains; record with -g to have them");
  if (history.is_wanted)
    branch_chains.emplace(graph.order == ChainOrder::Caller, options->reading.session.max_stack);
  auto made = make_columns(column_request(*options, mode, has_children), facts);
  if (!made) return std::move(made.error());
  columns = std::move(*made);
  if (auto checked = check_switches(*session, columns, *options); !checked) return checked;
  if (has_key("parent") && !has_chains)
    return use_error("--sort parent: the capture has no call chains; record with -g to have them");
  return Done{};
}

Result<> ReportPlan::make_profile() {
  ProfileShape shape;
  shape.by_stack = has_children || has_graph || has_key("parent");
  shape.by_comm = options->view.is_interactive || has_key_of(KeyOf::Comm) || !options->filter.comms.empty();
  shape.by_thread = options->view.is_interactive || has_key_of(KeyOf::Thread) ||
                    !options->filter.pids.empty() || !options->filter.tids.empty();
  for (const KeyUse& use : columns.keys) {
    if (use.key->read == nullptr) continue;
    shape.facts.push_back(
        [&use, this](const ResolvedSample& sample) { return use.key->read(use, facts, sample); });
  }
  if (mode == ReportMode::Branches) {
    const bool needs_own =
        options->hides_unknown || !options->filter.dsos.empty() || !options->filter.symbols.empty();
    branches.emplace(facts, needs_own);
    branches->add_facts(shape);
    if (options->branches.shows_cycles) cycles.emplace(keeps_every_branch(*session));
  }
  if (options->filter.socket) {
    socket_fact = shape.facts.size();
    shape.facts.push_back([this](const ResolvedSample& sample) -> std::uint64_t {
      return facts.socket_of(sample.fields->cpu).value_or(~0U);
    });
  }
  if (shows_latency(columns) || !options->filter.parallelism.empty()) {
    parallelism_fact = shape.facts.size();
    shape.facts.push_back([this](const ResolvedSample&) -> std::uint64_t { return facts.parallelism(); });
  }
  const bool is_grouped = options->grouping != Grouping::Never;
  has_facts = !shape.facts.empty();
  sum_shape = {.by_stack = shape.by_stack, .by_comm = shape.by_comm, .by_thread = shape.by_thread};
  profile.emplace(
      blocks_of(session->events().size(), is_grouped ? std::span(groups) : std::span<format::EventGroup>()),
      std::move(shape));
  return find_waits();
}

// The profile needs the facts of the waits' keys, which are read from the sample of the wait.
Result<> ReportPlan::find_waits() {
  if (!options->waits.is_asked_for) return Done{};
  WaitOptions asked = options->waits;
  asked.who.condition = std::exchange(session->filter().condition, nullptr);
  waits.emplace(*session, asked,
                [this](const ResolvedSample& sample) { return value_of(profile->facts_of(sample)); });
  wait_chains.emplace();
  return waits->find_events();
}

void ReportPlan::make_names() {
  // -v shows the first address of each row.
  const bool by_address = options->is_verbose || distinguishes_addresses(columns);
  functions.emplace(*session, graph.key, by_address ? Grain::Addresses : Grain::Functions,
                    options->has_folders ? SourceNames::WithFolders : SourceNames::Bare);
  if (std::ranges::any_of(columns.keys, [](const KeyUse& use) { return use.key->has_mapped_bytes; }))
    functions->keep_mapped_bytes();
  if (options->reading.perf_bytes.leaves_out_parameters) functions->name_as_perf();
  facts.functions = &*functions;
  // As perf: with --hierarchy, graphs do not show how branches went.
  const bool shows_steps = branch_chains && !options->has_levels;
  stacks.emplace(*functions, ChainOptions{.order = graph.order,
                                          .hides_unknown = options->hides_unknown,
                                          .branches = shows_steps ? &*branch_chains : nullptr,
                                          .waits = wait_chains ? &*wait_chains : nullptr});
  names_chains_late = !by_address && can_name_chains_late();
  names.emplace(*profile, *session, *functions, names_chains_late ? nullptr : &*stacks);
}

// Whether functions must be named: rows by thread, module or facts of samples show no names.
bool ReportPlan::needs_names() const {
  const Filter& shown = options->filter;
  const bool shows_chains = has_children || has_graph || has_key_of(KeyOf::Chain) || waits;
  const bool filters_names = options->hides_unknown || !shown.symbols.empty() || !shown.symbol_part.empty() ||
                             options->chains.parent || !options->chains.ignored_callees.empty() ||
                             session->filter().looks_at_names() || session->filter().condition != nullptr ||
                             session->has_condition();
  // In the interactive view they may be sorted by other keys later.
  return mode != ReportMode::Samples || shows_chains || filters_names || needs_records ||
         options->is_verbose || options->view.is_interactive ||
         std::ranges::any_of(columns.keys, [](const KeyUse& use) {
           const bool is_of_thread = use.key->of == KeyOf::Comm || use.key->of == KeyOf::Thread;
           const bool is_fact = use.key->of == KeyOf::Sample && use.field == nullptr;
           return !is_of_thread && !is_fact && use.key->name != "dso";
         });
}

// Whether call chains can be named after the rows, for drawn graphs only (else report --no-children takes 17
// % more CPU time and a third more memory for a capture of 143 MB): rows depend only on the addresses of
// their samples, and rows below the threshold have no graph. Names of inlined calls depend on earlier
// look-ups, as in perf; graphs by address show where a function was met first; in CSV and JSON, names have
// parameters if any function that the capture names has the same name. With perf's order of siblings of equal
// weight, the order may depend on the modules met before (CallTree), as in perf.
bool ReportPlan::can_name_chains_late() const {
  const bool has_heavy_graphs =
      has_graph && graph.form == GraphForm::Graph && graph.key == ChainKey::Function && graph.min_percent > 0;
  const bool needs_chains = options->view.is_interactive || has_children || branch_chains || waits ||
                            has_key_of(KeyOf::Chain) || !options->chains.ignored_callees.empty() ||
                            options->shows_other_chains || shows_latency(columns) || options->has_levels ||
                            options->is_verbose || options->is_for_programs();
  const auto inlines = options->reading.session.symbols.inlines;
  if (inlines == symbolize::Inlines::All ||
      (inlines == symbolize::Inlines::Unwound && has_unwound_stacks(*session)))
    return false;
  return mode == ReportMode::Samples && has_heavy_graphs && !needs_chains &&
         std::ranges::all_of(profile->blocks(), [](const EventBlock& block) { return block.members == 1; });
}

// By address, if rows or columns distinguish addresses of one function.
Sink::MergeBy ReportPlan::merge_by() const {
  const bool shows_addresses = needs_records || options->view.is_interactive || options->is_verbose ||
                               !WantedAddresses(options->filter).empty() ||
                               options->reading.session.symbols.source_lines == symbolize::SourceLines::Yes ||
                               distinguishes_addresses(columns);
  if (shows_addresses) return Sink::MergeBy::Address;
  return sum_shape.by_stack && merges_chains() ? Sink::MergeBy::FrameFunction : Sink::MergeBy::Function;
}

// Whether chains of the same functions are one: no form shows where a function was met first, and no frame
// has inlined calls.
bool ReportPlan::merges_chains() const {
  const auto inlines = options->reading.session.symbols.inlines;
  return graph.key == ChainKey::Function && !session->layout().is_pipe &&
         inlines != symbolize::Inlines::All && !has_unwound_stacks(*session);
}

bool ReportPlan::is_of_sums() const {
  const bool has_all_chains = sum_shape.by_stack || !options->reading.session.wants_stacks ||
                              !has_stacks(session->events(), session->features());
  return has_all_chains && !needs_records && !waits && !has_facts && weight->is_of_sums() &&
         !options->switches.is_asked_for() && options->filter.cpus.empty() && !options->shows_other_chains &&
         !branches && !branch_chains;
}

}  // namespace tacho::report
