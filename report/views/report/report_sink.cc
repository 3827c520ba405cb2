#include "report/views/report/report_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "cli/nearest.h"
#include "report/profile/entries.h"
#include "report/profile/profile.h"
#include "report/samples/chain_sources.h"
#include "report/views/report/row_filters.h"

namespace tacho::report {

namespace abi = format::abi;

ReportSink::ReportSink(Session& session, const ReportOptions& options, bool has_colour)
    : session_(&session),
      options_(&options),
      switch_(options.switches),
      has_colour_(has_colour),
      mode_(mode_of(session, options)),
      history_(branch_history_of(session, options)),
      needs_records_(mode_ != ReportMode::Samples || history_.is_wanted || options.shows_thread_values ||
                     names_key_with(options.sort, options.fields, SortKey::Needs::Cgroups) ||
                     asks_for_parallelism(options)) {}

namespace {

// Whether a key has different values at addresses of one function.
bool distinguishes_addresses(const ReportColumns& columns) {
  return std::ranges::any_of(
      columns.keys, [](const KeyUse& use) { return use.key->of == KeyOf::Address || use.key->has_lines; });
}

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

// By address, if rows or columns distinguish addresses of one function.
Sink::MergeBy ReportSink::merge_by() const {
  const bool shows_addresses =
      !plan_ || needs_records_ || options_->is_interactive || options_->is_verbose ||
      !WantedAddresses(options_->filter).empty() ||
      options_->reading.session.symbols.source_lines == symbolize::SourceLines::Yes ||
      distinguishes_addresses(plan_->columns);
  if (shows_addresses) return MergeBy::Address;
  return sum_shape_.by_stack && merges_chains() ? MergeBy::FrameFunction : MergeBy::Function;
}

// Whether chains of the same functions are one: no form shows where a function was met first, and no frame
// has inlined calls.
bool ReportSink::merges_chains() const {
  const auto inlines = options_->reading.session.symbols.inlines;
  const bool has_unwound = std::ranges::any_of(session_->events(), [](const format::Event& event) {
    return event.attr.samples(abi::kSampleRegsUser);
  });
  return plan_->graph.key == ChainKey::Function && !session_->layout().is_pipe &&
         inlines != symbolize::Inlines::All && !has_unwound;
}

Sink::Flow ReportSink::on_sample(const ResolvedSample& sample) {
  if (!profile_) {
    if (auto arranged = arrange(); !arranged) {
      failure_ = arranged.error();
      return Flow::Stop;
    }
  }
  if (!switch_.accepts(sample)) return Flow::Continue;
  const auto& cpus = options_->filter.cpus;
  if (!cpus.empty() && std::ranges::find(cpus, sample.fields->cpu) == cpus.end()) return Flow::Continue;
  if (waits_) {
    if (const auto wait = waits_->take(sample)) add_wait(*wait);
  } else if (mode_ == ReportMode::Branches) {
    plan_->branches->add(*profile_, sample);
    if (plan_->cycles) plan_->cycles->add(sample);
  } else if (mode_ == ReportMode::Memory) {
    profile_->add(sample, std::max<std::uint64_t>(sample.fields->weight, 1));
  } else if (const auto weight = weight_->of(sample)) {
    add_sample(sample, *weight);
  }
  if (plan_->names) plan_->names->name_new();
  return Flow::Continue;
}

// Lanes can sum rows and weights that depend only on the addresses of samples.
SumView* ReportSink::sum_view() {
  const bool is_usual = plan_ && !needs_records_ && !waits_ && !has_facts_ && weight_->is_of_sums() &&
                        !options_->switches.is_asked_for() && options_->filter.cpus.empty() &&
                        !options_->shows_other_chains && !plan_->branches && !plan_->branch_chains;
  const bool has_chains =
      options_->reading.session.wants_stacks && has_stacks(session_->events(), session_->features());
  return is_usual && (sum_shape_.by_stack || !has_chains) ? this : nullptr;
}

SumShape ReportSink::shape() const {
  SumShape shape = sum_shape_;
  shape.merge_by = merge_by();
  return shape;
}

RowId ReportSink::row_of(const SumGroup& row) {
  const RowId id = profile_->row_for({.event = row.event,
                                      .location = row.location,
                                      .thread = row.thread,
                                      .comm = row.comm,
                                      .stack = row.stack});
  if (plan_->names) plan_->names->name_new();
  return id;
}

void ReportSink::count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) {
  profile_->count(row, event, {.period = weight_->of_sum(event, period, samples), .samples = samples});
}

// Adds the sample, with the call chain that the options select.
void ReportSink::add_sample(const ResolvedSample& sample, std::uint64_t weight) {
  if (!plan_->branch_chains && !options_->shows_other_chains) return profile_->add(sample, weight);
  ResolvedSample counted = sample;
  if (plan_->branch_chains) counted.stack = plan_->branch_chains->stack_of(sample);
  if (options_->shows_other_chains) {
    if (counted.stack == nullptr) {
      counted.stack = last_stack_;
    } else {
      last_stack_ = counted.stack;
    }
  }
  profile_->add(counted, weight);
}

void ReportSink::add_wait(const Wait& wait) {
  profile_->add({.event = wait.event,
                 .location = wait.location,
                 .facts = wait.kept,
                 .thread = wait.thread,
                 .comm = wait.comm,
                 .stack = plan_->wait_chains->stack_of(wait)},
                wait.weight);
  if (plan_->wait_chains->bytes() > kMostChainBytes) waits_->leave_wakers_out();
}

// The profile needs the facts of the waits' keys, which are read from the sample of the wait.
Result<> ReportSink::find_waits() {
  if (!options_->waits.is_asked_for) return Done{};
  WaitOptions options = options_->waits;
  options.who.condition = std::exchange(session_->filter().condition, nullptr);
  waits_.emplace(*session_, options,
                 [this](const ResolvedSample& sample) { return profile_->facts_of(sample); });
  plan_->wait_chains.emplace();
  return waits_->find_events();
}

bool ReportSink::borrows_chains(const EventBlock& block) const {
  return options_->shows_other_chains &&
         !session_->events()[block.leader].attr.samples(abi::kSampleCallchain);
}

ColumnRequest ReportSink::request_of(bool has_children) const {
  // As in perf, blocks belong to the rows of the default sort order.
  const bool has_blocks = options_->shows_cycles && mode_ == ReportMode::Branches;
  std::string sort = has_blocks ? std::string() : options_->sort;
  // The text of a tracepoint, the default key, does not describe a wait.
  if (options_->waits.is_asked_for && (sort.empty() || sort.front() == '+'))
    sort.replace(0, 1, sort.empty() ? "comm,dso,symbol" : "comm,dso,symbol,");
  return {.sort = std::move(sort),
          .fields = options_->fields,
          .has_children = has_children,
          .shows_modes = options_->shows_modes,
          .shows_samples = options_->shows_samples,
          .shows_period = options_->shows_period,
          .prefers_latency = options_->prefers_latency,
          .has_parent = options_->parent.has_value(),
          .has_ipc = !options_->waits.is_asked_for && !options_->is_live};
}

Result<> ReportSink::arrange() {
  const auto& events = session_->events();
  history_ = branch_history_of(*session_, *options_);  // in a pipe, events are known now
  if (auto checked = check_mode(*session_, *options_, mode_); !checked) return checked;
  groups_ = groups_of(*session_, options_->grouping);
  if (auto found = switch_.find_events(event_names(events)); !found) return found;
  if (options_->first_member != 0 && groups_.empty())
    return use_error("--group-sort-idx: the capture has no group of events; record with -e '{A,B}'");
  const bool has_stacks_of_its_own = has_stacks(events, session_->features());
  const bool has_chains = mode_ != ReportMode::Branches && (has_stacks_of_its_own || history_.shows_counts);
  plan_ = std::make_unique<Plan>(
      Plan{.facts = SampleFacts(*session_,
                                {.names = options_->is_for_programs() ? Names::Raw : options_->reading.names,
                                 .is_raw_trace = options_->is_raw_trace,
                                 .has_hex_longs = !options_->is_for_programs(),
                                 .has_nanoseconds = options_->has_nanoseconds,
                                 .time_quantum = options_->time_quantum,
                                 .is_verbose = options_->is_verbose,
                                 .marks_missing = !options_->reading.perf_bytes.is_asked_for,
                                 .mode = mode_,
                                 .widens_unknown = options_->separator.empty() && options_->widths.empty() &&
                                                   options_->filter.dsos.empty()},
                                std::move(early_)),
           .columns = {},
           .graph = options_->graph});
  plan_->has_chains = has_chains;
  // In a pipe, perf decides about call chains before it knows the events, and adds up no children.
  plan_->has_children = mode_ == ReportMode::Samples && options_->wants_children && has_stacks_of_its_own &&
                        (!session_->layout().is_pipe || options_->is_live) && !options_->has_levels;
  plan_->has_graph = has_chains && options_->graph.form != GraphForm::None;
  plan_->graph.order = options_->begins_with_caller() ? ChainOrder::Caller : ChainOrder::Callee;
  if (options_->asks_for_graph && plan_->graph.form != GraphForm::None && !has_chains)
    return use_error("--call-graph: the capture has no call chains; record with -g to have them");
  if (history_.is_wanted)
    plan_->branch_chains.emplace(plan_->graph.order == ChainOrder::Caller,
                                 options_->reading.session.max_stack);
  auto columns = make_columns(request_of(plan_->has_children), plan_->facts);
  if (!columns) return columns.error();
  plan_->columns = std::move(*columns);
  if (auto checked = check_switches(*session_, plan_->columns, *options_); !checked) return checked;

  if (has_key("parent") && !has_chains)
    return use_error("--sort parent: the capture has no call chains; record with -g to have them");
  ProfileShape shape;
  shape.by_stack = plan_->has_children || plan_->has_graph || has_key("parent");
  shape.by_comm = options_->is_interactive || has_key_of(KeyOf::Comm) || !options_->filter.comms.empty();
  shape.by_thread = options_->is_interactive || has_key_of(KeyOf::Thread) || !options_->filter.pids.empty() ||
                    !options_->filter.tids.empty();
  for (const KeyUse& use : plan_->columns.keys) {
    if (use.key->read == nullptr) continue;
    shape.facts.push_back([&use, facts = &plan_->facts](const ResolvedSample& sample) {
      return use.key->read(use, *facts, sample);
    });
  }
  if (mode_ == ReportMode::Branches) {
    const bool needs_own =
        options_->hides_unknown || !options_->filter.dsos.empty() || !options_->filter.symbols.empty();
    plan_->branches.emplace(plan_->facts, needs_own);
    plan_->branches->add_facts(shape);
    if (options_->shows_cycles) plan_->cycles.emplace(keeps_every_branch(*session_));
  }
  if (options_->socket) {
    socket_fact_ = shape.facts.size();
    shape.facts.push_back([facts = &plan_->facts](const ResolvedSample& sample) -> std::uint64_t {
      return facts->socket_of(sample.fields->cpu).value_or(~0U);
    });
  }
  if (shows_latency(plan_->columns) || !options_->parallelism.empty()) {
    parallelism_fact_ = shape.facts.size();
    shape.facts.push_back(
        [facts = &plan_->facts](const ResolvedSample&) -> std::uint64_t { return facts->parallelism(); });
  }
  const bool is_grouped = options_->grouping != Grouping::Never;
  has_facts_ = !shape.facts.empty();
  sum_shape_ = {.by_stack = shape.by_stack, .by_comm = shape.by_comm, .by_thread = shape.by_thread};
  profile_.emplace(
      blocks_of(session_->events().size(), is_grouped ? std::span(groups_) : std::span<format::EventGroup>()),
      std::move(shape));
  if (auto found = find_waits(); !found) return found;
  using WithModules = symbolize::Symbolizer::WithModules;
  if (!needs_names())
    session_->resolver().leave_names_out(has_key("dso") ? WithModules::Yes : WithModules::No);
  if (!session_->layout().is_pipe) make_names();
  const bool keeps_zero = options_->reading.perf_bytes.keeps_zero_periods;
  weight_.emplace(options_->weight, session_->events().size(), plan_->facts.schemas(), keeps_zero);
  if (keeps_zero) sum_shape_.zero_periods = SumShape::ZeroPeriods::Keep;
  return Done{};
}

void ReportSink::make_names() {
  // -v shows the first address of each row.
  const bool by_address = options_->is_verbose || distinguishes_addresses(plan_->columns);
  plan_->functions.emplace(*session_, plan_->graph.key, by_address ? Grain::Addresses : Grain::Functions,
                           options_->has_folders ? SourceNames::WithFolders : SourceNames::Bare);
  if (std::ranges::any_of(plan_->columns.keys, [](const KeyUse& use) { return use.key->has_mapped_bytes; }))
    plan_->functions->keep_mapped_bytes();
  if (options_->reading.perf_bytes.leaves_out_parameters) plan_->functions->name_as_perf();
  plan_->facts.functions = &*plan_->functions;
  // As perf: with --hierarchy, graphs do not show how branches went.
  const bool shows_steps = plan_->branch_chains && !options_->has_levels;
  plan_->stacks.emplace(*plan_->functions,
                        ChainOptions{.order = plan_->graph.order,
                                     .hides_unknown = options_->hides_unknown,
                                     .branches = shows_steps ? &*plan_->branch_chains : nullptr,
                                     .waits = plan_->wait_chains ? &*plan_->wait_chains : nullptr});
  plan_->names_chains_late = !by_address && can_name_chains_late();
  plan_->names.emplace(*profile_, *session_, *plan_->functions,
                       plan_->names_chains_late ? nullptr : &*plan_->stacks);
}

// Whether functions must be named: rows by thread, module or facts of samples show no names.
bool ReportSink::needs_names() const {
  const Filter& shown = options_->filter;
  const bool shows_chains = plan_->has_children || plan_->has_graph || has_key_of(KeyOf::Chain) || waits_;
  const bool filters_names = options_->hides_unknown || !shown.symbols.empty() ||
                             !shown.symbol_part.empty() || options_->parent ||
                             !options_->ignored_callees.empty() || session_->filter().looks_at_names() ||
                             session_->filter().condition != nullptr || session_->has_condition();
  // In the interactive view they may be sorted by other keys later.
  return mode_ != ReportMode::Samples || shows_chains || filters_names || needs_records_ ||
         options_->is_verbose || options_->is_interactive ||
         std::ranges::any_of(plan_->columns.keys, [](const KeyUse& use) {
           const bool is_of_thread = use.key->of == KeyOf::Comm || use.key->of == KeyOf::Thread;
           const bool is_fact = use.key->of == KeyOf::Sample && use.field == nullptr;
           return !is_of_thread && !is_fact && use.key->name != "dso";
         });
}

// Whether call chains can be named after the rows, for drawn graphs only: rows depend only on the addresses
// of their samples, and rows below the threshold have no graph. Names of inlined calls depend on earlier
// look-ups, as in perf; graphs by address show where a function was met first; in CSV and JSON, names have
// parameters if any function that the capture names has the same name. With perf's order of siblings of equal
// weight, the order may depend on the modules met before (CallTree), as in perf.
bool ReportSink::can_name_chains_late() const {
  const bool has_heavy_graphs = plan_->has_graph && plan_->graph.form == GraphForm::Graph &&
                                plan_->graph.key == ChainKey::Function && plan_->graph.min_percent > 0;
  const bool needs_chains = options_->is_interactive || plan_->has_children || plan_->branch_chains ||
                            waits_ || has_key_of(KeyOf::Chain) || !options_->ignored_callees.empty() ||
                            options_->shows_other_chains || shows_latency(plan_->columns) ||
                            options_->has_levels || options_->is_verbose || options_->is_for_programs();
  const auto inlines = options_->reading.session.symbols.inlines;
  const bool has_unwound = std::ranges::any_of(session_->events(), [](const format::Event& event) {
    return event.attr.samples(abi::kSampleRegsUser);
  });
  if (inlines == symbolize::Inlines::All || (inlines == symbolize::Inlines::Unwound && has_unwound))
    return false;
  const auto blocks = profile_->blocks();
  return mode_ == ReportMode::Samples && has_heavy_graphs && !needs_chains &&
         std::ranges::all_of(blocks, [](const EventBlock& block) { return block.members == 1; });
}

EntryOptions ReportSink::entry_options(FunctionTable& functions) const {
  EntryOptions options;
  options.keeps_zero_periods = options_->reading.perf_bytes.keeps_zero_periods;
  options.has_children = plan_->has_children;
  options.pool = &session_->pool();
  if (plan_->has_graph) options.graph = plan_->graph.order;
  if (plan_->names_chains_late)
    options.late = {&*plan_->stacks, plan_->graph.min_percent, options_->is_relative};
  options.hides_unknown = options_->hides_unknown;
  options.counts_modes = options_->has_levels || plan_->columns.shows_modes();
  options.first_member = static_cast<std::size_t>(options_->first_member);
  constexpr std::string_view kUsualParent = "^sys_|^do_page_fault";
  if (has_key_of(KeyOf::Chain))
    options.is_parent = test_of_name(options_->parent.value_or(std::string(kUsualParent)));
  options.shows_only_with_parent = options_->parent && options_->shows_only_with_parent;
  if (!options_->ignored_callees.empty()) options.is_root = test_of_name(options_->ignored_callees);
  options.filtered_by = row_filter(*options_, {.profile = &*profile_,
                                               .resolver = &session_->resolver(),
                                               .functions = &functions,
                                               .branches = plan_->branches ? &*plan_->branches : nullptr,
                                               .socket_fact = socket_fact_,
                                               .parallelism_fact = parallelism_fact_});
  options.keeps_filtered = options_->has_levels;
  if (options_->hides_idle)
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
    const BranchRows::Known branch = plan_->branches->known(profile_->facts(row));
    return is_unknown(branch.own) || is_unknown(branch.from);
  };
  return options;
}

TextOptions ReportSink::text_options() const {
  TextOptions text;
  text.names = options_->reading.names;
  text.separator = options_->separator;
  text.widths = options_->widths;
  text.percent_limit = options_->percent_limit;
  text.is_relative = options_->is_relative;
  text.has_colour = has_colour_;
  text.is_quiet = options_->is_quiet;
  text.has_children = plan_->has_children;
  text.has_groups = options_->grouping == Grouping::Always ||
                    (options_->grouping == Grouping::AsRecorded && !groups_.empty());
  text.top = options_->top;
  text.room = options_->separator.empty() ? options_->reading.room() : 0;
  text.symbol_filter = options_->filter.symbol_part;
  text.leaves_out_first = options_->fields.empty() && options_->sort.starts_with("sym");
  if (plan_->has_graph) text.graph = plan_->graph;
  return text;
}

// Writes a line for each filter that leaves a key a single value.
void ReportSink::write_single_values(TextOutput& out) const {
  const Filter& f = options_->filter;
  for (const auto& [name, list] :
       {std::pair("symbol", &f.symbols), std::pair("dso", &f.dsos), std::pair("comm", &f.comms)}) {
    if (list->size() == 1 && has_key(name))
      out.text(fmt::format("# {}: {}\n", name, printable(list->front(), options_->reading.names)));
  }
}

// Null: the output is text.
std::unique_ptr<RowForm> ReportSink::make_form(TextOutput& out, const FunctionTable& functions,
                                               CallTree& tree, const TextOptions& text) const {
  if (!options_->is_for_programs()) return nullptr;
  const RowSource source{.session = session_,
                         .columns = &plan_->columns,
                         .facts = &plan_->facts,
                         .functions = &functions,
                         .tree = &tree,
                         .input = options_->reading.session.input,
                         .text = &text,
                         .has_latency = shows_latency(plan_->columns)};
  return options_->form == ReportForm::Json ? make_json_form(out, source) : make_csv_form(out, source);
}

void ReportSink::settle_early() {
  if (!plan_->names) make_names();
  plan_->names->name_all();
  plan_->functions->show_parameters();
}

void ReportSink::settle() {
  settle_early();
  if (plan_->cycles) plan_->cycles->settle(session_->resolver());
}

EntryOptions ReportSink::entry_options(std::uint32_t block) const {
  EntryOptions options = entry_options(*plan_->functions);
  options.borrows_chains = borrows_chains(profile_->blocks()[block]);
  return options;
}

Result<std::optional<ReportColumns>> ReportSink::columns_of(const std::string& sort) const {
  ColumnRequest request = request_of(plan_->has_children);
  request.sort = sort;
  request.fields.clear();
  auto columns = make_columns(request, plan_->facts);
  if (!columns) return std::move(columns.error());
  for (KeyUse& use : columns->keys) {
    if (use.key->of == KeyOf::Address || use.key->of == KeyOf::Chain || use.key->has_lines ||
        use.key->has_mapped_bytes)
      return std::optional<ReportColumns>();
    if (use.key->read == nullptr) continue;
    const auto known = std::ranges::find_if(plan_->columns.keys,
                                            [&use](const KeyUse& one) { return is_same_key(one, use); });
    if (known == plan_->columns.keys.end()) return std::optional<ReportColumns>();
    use.fact = known->fact;
  }
  return std::optional<ReportColumns>(std::move(*columns));
}

void ReportSink::write(TextOutput& out) {
  if (!profile_ && !arrange()) return;  // a pipe without samples
  settle();
  // Naming the remaining chains needs the functions' tables.
  plan_->names->end(mode_ != ReportMode::Samples || plan_->names_chains_late);
  profile_->end_lookups();
  FunctionTable& functions = *plan_->functions;
  EntryIndex index(plan_->columns.keys, plan_->facts, functions);
  EntryOptions entry_options = this->entry_options(functions);
  const TextOptions text_options = this->text_options();
  CallTree tree(functions.functions(), plan_->graph.key,
                history_.shows_counts ? &plan_->branch_chains->steps() : nullptr,
                options_->reading.perf_bytes.orders_siblings ? SiblingOrder::AsPerf : SiblingOrder::ByName);
  BranchStatistics statistics;
  const ReportText text(text_options, plan_->columns, single_value_columns(*options_, plan_->columns),
                        plan_->facts, tree, session_->pool());
  const HierarchyText levels_text(text_options, plan_->columns, plan_->facts, tree);
  const std::unique_ptr<RowForm> form = make_form(out, functions, tree, text_options);
  if (form) form->begin();
  for (std::uint32_t block = 0; block < profile_->blocks().size(); ++block) {
    if (profile_->rows_of(block).empty()) continue;
    entry_options.borrows_chains = borrows_chains(profile_->blocks()[block]);
    // Rows weighted by latency are the same rows in the same order.
    std::optional<Entries> latency;
    if (shows_latency(plan_->columns)) {
      EntryOptions by_latency = entry_options;
      by_latency.latency = nullptr;
      by_latency.weighed_by = weighed_by_latency(*profile_, parallelism_fact_);
      latency.emplace(*plan_->names, block, index, std::move(by_latency));
    }
    entry_options.latency = latency ? &*latency : nullptr;
    const Entries entries(*plan_->names, block, index, entry_options);
    functions.show_parameters();
    std::uint64_t samples = 0;
    for (std::size_t member = 0; member < entries.members(); ++member)
      samples += entries.total(member).samples;
    if (samples == 0) continue;
    const EventBlock& events = profile_->blocks()[block];
    if (form) {
      const FullValues totals = text.full_values(entries);
      const auto rows = text.shown_rows(entries, totals.weights[0]);
      form->write({.events = &events, .entries = &entries, .rows = rows, .totals = &totals});
      continue;
    }
    if (plan_->cycles) {
      if (!options_->is_quiet) write_title(out, events, entries, nullptr);
      const auto rows = entries.sorted(plan_->columns.sorted);
      write_blocks(out, entries, rows, *plan_->cycles, session_->resolver(), text_options);
      count_branches(entries, statistics);
      continue;
    }
    if (options_->has_levels) {
      write_levels(out, events, entries, levels_text);
    } else {
      if (!options_->is_quiet) write_title(out, events, entries, nullptr);
      text.write(out, entries, events.leader);
    }
    if (plan_->branches) count_branches(entries, statistics);
    out.text("\n\n");
  }
  if (form) return form->end();
  if (!options_->is_quiet && options_->sort.empty() && !options_->parent) {
    out.text("#\n# (Tip: call chains become a flame graph with: tacho flamegraph -i FILE -o FILE.svg)\n#\n");
  } else if (!options_->is_quiet) {
    out.text("#\n#\n");
  }
  if (options_->shows_thread_values)
    values_.write(out, *session_, options_->reading.names, options_->value_form);
  statistics.write(out);
}

// As perf, which counts the first branch of a row for all its branches.
void ReportSink::count_branches(const Entries& entries, BranchStatistics& statistics) const {
  Resolver& resolver = session_->resolver();
  for (const EntryId entry : entries.ids()) {
    const BranchRows::Known branch = plan_->branches->known(entries.facts(entry).facts);
    std::uint64_t count = 0;
    for (std::size_t member = 0; member < entries.members(); ++member)
      count += entries.totals(entry, member).self.samples;
    statistics.add(resolver.location(branch.from).ip.value, resolver.location(branch.to).ip.value,
                   branch_type(branch.type_flags), count);
  }
}

void ReportSink::write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                              const HierarchyText& text) const {
  const HierarchyPlan plan = text.plan(block.leader, block.members);
  HierarchyOptions options{.levels = plan.levels,
                           .sorted = plan_->columns.sorted,
                           .filters = filters_of(*options_),
                           .is_symbol_shown = {}};
  if (!options_->filter.symbol_part.empty()) {
    options.is_symbol_shown = [&part = options_->filter.symbol_part](const Function& function) {
      return function.shown_name().find(part) != std::string_view::npos;
    };
  }
  const Hierarchy hierarchy(entries, plan_->columns.keys, plan_->facts, std::move(options));
  if (!options_->is_quiet) write_title(out, block, entries, &hierarchy);
  text.write(out, entries, hierarchy, plan);
}

ReportSink::Title ReportSink::title(const EventBlock& block, const Entries& entries, bool is_relative) const {
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
  if (!options_->shown_times.empty())
    times = " (" + options_->shown_times + ")";
  else if (!options_->filter.time_text.empty())
    times = " (time slices: " + printable(options_->filter.time_text) + ")";
  if (options_->shows_other_chains && names.find("call-graph=no") != std::string::npos)
    times += ", show reference callgraph";
  return {fmt::format("Samples: {}{} of event{} '{}'{}", samples, unit, group != nullptr ? "s" : "",
                      printable(names, options_->reading.names), times),
          fmt::format("Event count (approx.): {}", total)};
}

// `hierarchy`: null if rows have no levels.
void ReportSink::write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                             const Hierarchy* hierarchy) const {
  std::uint64_t total = 0;
  for (std::size_t member = 0; member < entries.members(); ++member)
    total += hierarchy != nullptr ? hierarchy->total(member, options_->is_relative)
                                  : entries.whole(member, options_->is_relative);
  out.text("# " + title(block, entries, options_->is_relative).samples + "\n");
  if (mode_ == ReportMode::Memory) {
    const std::string_view sort = plan_->columns.sort.empty() ? kMemorySort : plan_->columns.sort;
    out.text(fmt::format("# Total weight : {}\n# Sort order   : {}\n", total,
                         printable(sort, options_->reading.names)));
  } else {
    out.text(fmt::format("# Event count (approx.): {}\n", total));
  }
  if (options_->socket) out.text(fmt::format("# Processor Socket: {}\n", *options_->socket));
  out.text("#\n");
}

const format::EventGroup* ReportSink::group_of(std::size_t leader) const {
  const auto found = std::ranges::lower_bound(groups_, leader, {}, &format::EventGroup::leader);
  return found == groups_.end() || found->leader != leader ? nullptr : &*found;
}

std::optional<Error> ReportSink::failure() const {
  if (failure_ || !weight_ || weight_->unreadable() == 0) return failure_;
  return use_error("--weight: " + std::to_string(weight_->unreadable()) + " samples have no number named '" +
                   options_->weight + "'; tacho header lists the fields of payloads");
}

std::vector<std::string> ReportSink::unmatched_names() const {
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
  if (!has_any || !profile_ || empty()) return lines;
  for (const RowId row : profile_->rows().ids()) {
    const Function& function = functions()[names()[row].function];
    if (!filter.comms.empty()) all[0].known.emplace(profile_->rows()[row].comm());
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

std::vector<std::string> ReportSink::notes() const {
  std::vector<std::string> lines;
  if (waits_) {
    lines.emplace_back("tacho report: rows are waits, weighted by nanoseconds");
    for (const std::string& note : waits_->notes()) lines.push_back("tacho report: " + note);
  }
  const std::string chosen = weight_ && !waits_ ? weight_->chosen_by_role() : std::string();
  if (!chosen.empty()) {
    lines.push_back("tacho report: rows are weighted by " + printable(chosen) +
                    ", as the event says (role:weight); --weight period or samples changes that");
  }
  if (profile_ && profile_->left_out() > 0)
    lines.push_back("tacho report: " + late_events_text(profile_->left_out()));
  if (const auto split = split_group(groups_)) lines.push_back("tacho report: " + *split);
  return lines;
}

}  // namespace tacho::report
