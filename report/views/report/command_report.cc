#include "report/views/report/command_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "report/decode/event_name.h"
#include "report/output/colour.h"
#include "report/perf_text/stats_text.h"
#include "report/profile/weight.h"
#include "report/samples/payload_stack.h"
#include "report/views/report/hierarchy_text.h"
#include "report/views/report/name_pattern.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_text.h"
#include "report/views/report/thread_values.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Members of a group that are shown side by side. Each row has a number for every member, so that a few bytes
// in a capture's header could ask for any amount of memory.
constexpr std::uint64_t kMostMembers = 64;

std::vector<EventBlock> blocks_of(const Session& session) {
  const std::size_t events = session.events().size();
  std::vector<EventBlock> blocks;
  std::size_t next = 0;
  const auto add_alone = [&](std::size_t end) {
    for (; next < end; ++next) blocks.push_back({static_cast<std::uint32_t>(next), 1});
  };
  auto groups = session.features().environment.groups;
  std::ranges::sort(groups, {}, &format::EventGroup::leader);
  for (const auto& group : groups) {
    const std::uint64_t end = std::uint64_t{group.leader} + group.members;
    if (group.members < 2 || group.members > kMostMembers || end > events || group.leader < next) continue;
    add_alone(group.leader);
    blocks.push_back({group.leader, group.members});
    next = static_cast<std::size_t>(end);
  }
  add_alone(events);
  return blocks;
}

// Made when the events are known: of a pipe, with its first sample.
struct Plan {
  SampleFacts facts;
  ReportColumns columns;
  bool has_chains = false, has_children = false, has_graph = false;
  GraphOptions graph;
};

class ReportSink : public Sink {
 public:
  ReportSink(Session& session, const ReportOptions& options, bool has_colour)
      : session_(&session),
        options_(&options),
        has_colour_(has_colour),
        needs_records_(options.shows_thread_values || options.sort.find("cgroup") != std::string::npos ||
                       options.fields.find("cgroup") != std::string::npos) {}

  // Readies it for the session's events; an error names a wrong option.
  Result<> arrange();

  Needs needs() const override { return needs_records_ ? Needs::Everything : Needs::Names; }

  Flow on_sample(const ResolvedSample& sample) override {
    if (!profile_) {
      if (auto arranged = arrange(); !arranged) {
        failure_ = arranged.error();
        return Flow::Stop;
      }
    }
    if (const auto weight = weight_->of(sample)) profile_->add(sample, *weight);
    return Flow::GoOn;
  }

  Flow on_other(const OtherEvent& other) override {
    if (plan_) plan_->facts.take(*other.record);
    if (options_->shows_thread_values) values_.add(other);
    return Flow::GoOn;
  }

  // What made the run useless: a wrong option that only the samples showed.
  std::optional<Error> failure() const;
  // Lines for stderr.
  std::vector<std::string> notes() const;
  bool empty() const { return !profile_ || profile_->rows().empty(); }
  void report(format::Diagnostics& diagnostics) const {
    if (plan_) plan_->facts.report(diagnostics);
  }
  void write_single_values(TextOutput& out) const;
  void write(TextOutput& out);

 private:
  ColumnRequest request_of(bool has_children) const;
  void write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                   const Hierarchy* hierarchy) const;
  std::string group_name(std::size_t leader) const;
  EntryOptions entry_options() const;
  std::function<FilterBits(const ProfileRow&, const Function&)> filter() const;
  FilterBits filters() const;
  void write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                    const HierarchyText& text) const;
  TextOptions text_options() const;
  std::vector<Column> hidden_columns() const;

  Session* session_;
  const ReportOptions* options_;
  std::unique_ptr<Plan> plan_;
  std::optional<Profile> profile_;
  std::optional<WeightChoice> weight_;
  std::optional<Error> failure_;
  ThreadValues values_;
  bool has_colour_;
  bool needs_records_;  // beside samples
};

std::optional<Error> ReportSink::failure() const {
  if (failure_ || !weight_ || weight_->unreadable() == 0) return failure_;
  const std::string field = options_->weight.empty() ? "of role:weight" : "named '" + options_->weight + "'";
  return use_error("--weight: " + std::to_string(weight_->unreadable()) + " samples have no number " + field +
                   " that is not below 0; tacho header lists the fields of payloads");
}

std::vector<std::string> ReportSink::notes() const {
  std::vector<std::string> lines;
  const std::string chosen = weight_ ? weight_->chosen_by_role() : std::string();
  if (!chosen.empty()) {
    lines.push_back("tacho report: rows are weighed by " + printable(chosen) +
                    ", as the event says (role:weight); --weight period or samples weighs them otherwise");
  }
  for (const auto& group : session_->features().environment.groups) {
    if (group.members <= kMostMembers) continue;
    lines.push_back(
        fmt::format("tacho report: a group of {} events is shown event by event, as more than {} "
                    "do not stand side by side",
                    group.members, kMostMembers));
    break;
  }
  return lines;
}

ColumnRequest ReportSink::request_of(bool has_children) const {
  return {.sort = options_->sort,
          .fields = options_->fields,
          .has_children = has_children,
          .shows_modes = options_->shows_modes,
          .shows_samples = options_->shows_samples,
          .shows_period = options_->shows_period,
          .has_parent = options_->parent.has_value()};
}

Result<> ReportSink::arrange() {
  const auto& events = session_->events();
  const bool has_chains = has_stacks(events, session_->features());
  plan_ = std::make_unique<Plan>(Plan{
      .facts = SampleFacts(*session_, {.names = options_->reading.names,
                                       .is_raw_trace = options_->is_raw_trace,
                                       .has_nanoseconds = options_->has_nanoseconds,
                                       .time_quantum = options_->time_quantum,
                                       .is_verbose = options_->is_verbose,
                                       .widens_unknown = options_->separator.empty() &&
                                                         options_->widths.empty() && options_->dsos.empty()}),
      .columns = {},
      .graph = options_->graph});
  plan_->has_chains = has_chains;
  // perf asks for call chains before a pipe has told of its events, and then does not add up children.
  plan_->has_children =
      options_->wants_children && has_chains && !session_->layout().is_pipe && !options_->has_levels;
  plan_->has_graph = has_chains && options_->graph.form != GraphForm::None;
  plan_->graph.order = options_->begins_with_caller() ? ChainOrder::Caller : ChainOrder::Callee;
  if (options_->asks_for_graph && plan_->graph.form != GraphForm::None && !has_chains)
    return use_error("--call-graph: the capture has no call chains; record with -g to have them");
  auto columns = make_columns(request_of(plan_->has_children), plan_->facts);
  if (!columns) return columns.error();
  plan_->columns = std::move(*columns);

  const auto uses = [&](std::string_view name) {
    return std::ranges::any_of(plan_->columns.keys, [&](const KeyUse& use) { return use.key->name == name; });
  };
  if (uses("parent") && !has_chains)
    return use_error("--sort parent: the capture has no call chains; record with -g to have them");
  ProfileShape shape;
  shape.by_stack = plan_->has_children || plan_->has_graph || uses("parent");
  shape.by_comm = uses("comm") || !options_->comms.empty();
  shape.by_thread = uses("pid") || uses("tid") || !options_->pids.empty() || !options_->tids.empty();
  for (const KeyUse& use : plan_->columns.keys) {
    if (use.key->read == nullptr) continue;
    shape.facts.push_back([&use, facts = &plan_->facts](const ResolvedSample& sample) {
      return use.key->read(use, *facts, sample);
    });
  }
  profile_.emplace(blocks_of(*session_), std::move(shape));
  weight_.emplace(options_->weight, session_->events().size(), plan_->facts.schemas());
  return Done{};
}

std::function<FilterBits(const ProfileRow&, const Function&)> ReportSink::filter() const {
  if (filters() == 0) return {};
  return [&o = *options_](const ProfileRow& row, const Function& function) {
    const auto holds = [](const auto& list, const auto& item) {
      return list.empty() || std::ranges::find(list, item) != list.end();
    };
    const std::string_view path = function.module == nullptr ? std::string_view() : function.module->path;
    const std::string_view name =
        function.module == nullptr ? std::string_view() : function.module->short_name;
    FilterBits refused = 0;
    if (!holds(o.comms, row.comm) || !holds(o.pids, row.thread->pid) || !holds(o.tids, row.thread->tid))
      refused |= kByThread;
    if (!holds(o.dsos, name) && !holds(o.dsos, path)) refused |= kByModule;
    if (!holds(o.symbols, function.name)) refused |= kBySymbol;
    return refused;
  };
}

FilterBits ReportSink::filters() const {
  const ReportOptions& o = *options_;
  FilterBits filters = 0;
  if (!o.comms.empty() || !o.pids.empty() || !o.tids.empty()) filters |= kByThread;
  if (!o.dsos.empty()) filters |= kByModule;
  if (!o.symbols.empty()) filters |= kBySymbol;
  return filters;
}

EntryOptions ReportSink::entry_options() const {
  EntryOptions options;
  options.has_children = plan_->has_children;
  if (plan_->has_graph) options.graph = plan_->graph.order;
  options.hides_unknown = options_->hides_unknown;
  constexpr std::string_view kUsualParent = "^sys_|^do_page_fault";
  if (std::ranges::any_of(plan_->columns.keys, [](const KeyUse& use) { return use.key->of == KeyOf::Chain; }))
    options.is_parent = test_of_name(options_->parent.value_or(std::string(kUsualParent)));
  options.shows_only_with_parent = options_->parent && options_->shows_only_with_parent;
  if (!options_->ignored_callees.empty()) options.is_root = test_of_name(options_->ignored_callees);
  options.filtered_by = filter();
  options.keeps_filtered = options_->has_levels;
  return options;
}

// perf does not show a column whose value a filter leaves no choice.
std::vector<Column> ReportSink::hidden_columns() const {
  std::vector<Column> hidden;
  const auto& columns = plan_->columns;
  for (const Column& column : columns.shown) {
    if (column.kind != Column::Kind::Key) continue;
    const std::string_view name = columns.keys[column.key].key->name;
    if ((name == "comm" && options_->comms.size() == 1) || (name == "dso" && options_->dsos.size() == 1) ||
        (name == "symbol" && options_->symbols.size() == 1)) {
      hidden.push_back(column);
    }
  }
  return hidden.size() == columns.keys.size() ? std::vector<Column>() : hidden;
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
  text.top = options_->top;
  text.symbol_filter = options_->symbol_filter;
  text.leaves_out_first = options_->fields.empty() && options_->sort.starts_with("sym");
  if (plan_->has_graph) text.graph = plan_->graph;
  return text;
}

// A line for each filter that leaves a key one value.
void ReportSink::write_single_values(TextOutput& out) const {
  const auto& o = *options_;
  for (const auto& [name, list] :
       {std::pair("symbol", &o.symbols), std::pair("dso", &o.dsos), std::pair("comm", &o.comms)}) {
    const bool is_key = std::ranges::any_of(
        plan_->columns.keys, [name = name](const KeyUse& use) { return use.key->name == name; });
    if (is_key && list->size() == 1)
      out.text(fmt::format("# {}: {}\n", name, printable(list->front(), o.reading.names)));
  }
}

void ReportSink::write(TextOutput& out) {
  const bool by_address =
      std::ranges::any_of(plan_->columns.keys, [](const KeyUse& use) { return use.key->of == KeyOf::Place; });
  FunctionTable functions(*session_, plan_->graph.key, by_address ? Grain::Addresses : Grain::Functions);
  FunctionStacks stacks(functions, {.order = plan_->graph.order, .hides_unknown = options_->hides_unknown});
  const TextOptions text_options = this->text_options();
  const ReportText text(text_options, plan_->columns, hidden_columns(), plan_->facts, functions);
  const HierarchyText levels_text(text_options, plan_->columns, plan_->facts, functions);
  for (std::uint32_t block = 0; block < profile_->blocks().size(); ++block) {
    const Entries entries(*profile_, block, plan_->columns.keys, plan_->facts, functions, &stacks,
                          entry_options());
    std::uint64_t samples = 0;
    for (std::size_t member = 0; member < entries.members(); ++member)
      samples += entries.total(member).samples;
    if (samples == 0) continue;
    const EventBlock& events = profile_->blocks()[block];
    if (options_->has_levels) {
      write_levels(out, events, entries, levels_text);
    } else {
      if (!options_->is_quiet) write_title(out, events, entries, nullptr);
      text.write(out, entries, events.leader);
    }
    out.text("\n\n");
  }
  if (!options_->is_quiet && options_->sort.empty() && !options_->parent) {
    out.text("#\n# (Tip: call chains become a flame graph with: tacho folded -i FILE | flamegraph.pl)\n#\n");
  } else if (!options_->is_quiet) {
    out.text("#\n#\n");
  }
  if (options_->shows_thread_values) values_.write(out, *session_, options_->reading.names);
}

void ReportSink::write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                              const HierarchyText& text) const {
  const HierarchyPlan plan = text.plan(block.leader, block.members);
  HierarchyOptions options{
      .levels = plan.levels, .sorted = plan_->columns.sorted, .filters = filters(), .is_symbol_shown = {}};
  if (!options_->symbol_filter.empty()) {
    options.is_symbol_shown = [&part = options_->symbol_filter](const Function& function) {
      return function.name.find(part) != std::string_view::npos;
    };
  }
  const Hierarchy hierarchy(entries, plan_->columns.keys, plan_->facts, std::move(options));
  if (!options_->is_quiet) write_title(out, block, entries, &hierarchy);
  text.write(out, entries, hierarchy, plan);
}

// `hierarchy`: null when rows have no levels.
void ReportSink::write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                             const Hierarchy* hierarchy) const {
  std::uint64_t samples = 0, total = 0;
  std::string names;
  for (std::size_t member = 0; member < entries.members(); ++member) {
    const Weight all = entries.total(member);
    const Weight filtered = options_->is_relative ? entries.filtered(member) : Weight();
    samples += all.samples - filtered.samples;
    if (hierarchy != nullptr) {
      total += hierarchy->total(member, options_->is_relative);
    } else {
      total += all.period == 0 ? all.samples - filtered.samples : all.period - filtered.period;
    }
    if (member > 0) names += ", ";
    names += event_name(session_->events()[block.leader + member], session_->features());
  }
  char unit = ' ';
  for (const char larger : {'K', 'M', 'G'}) {
    if (samples <= 1000) break;
    samples /= 1000;
    unit = larger;
  }
  const bool is_group = entries.members() > 1;
  if (is_group) names = group_name(block.leader) + " { " + names + " }";
  std::string times;
  if (!options_->times.empty()) times = " (time slices: " + printable(options_->times) + ")";
  out.text(fmt::format("# Samples: {}{} of event{} '{}'{}\n# Event count (approx.): {}\n#\n", samples, unit,
                       is_group ? "s" : "", printable(names, options_->reading.names), times, total));
}

std::string ReportSink::group_name(std::size_t leader) const {
  for (const auto& group : session_->features().environment.groups) {
    if (group.leader == leader && !group.name.empty() && group.name != "{anon_group}") return group.name;
  }
  return "anon group";
}

// The header, and of a pipe what its first records say.
void write_heads(TextOutput& out, Session& session, const ReportOptions& options) {
  const Names names = options.reading.names;
  write_header(out, session.layout(), session.events(), session.features(), names, options.detail);
  if (!session.layout().is_pipe || !options.header_only) return;
  read_head(session);
  write_features(out, session.events(), session.features(), names, options.detail);
}

Result<> check_patterns(const ReportOptions& options) {
  for (const auto& [option, pattern] : {std::pair("--parent", options.parent.value_or("")),
                                        std::pair("--ignore-callees", options.ignored_callees)}) {
    const NamePattern tried(pattern);
    if (!tried.is_sound())
      return use_error(std::string(option) + ": '" + pattern +
                       "' is no regular expression: " + tried.fault());
  }
  return Done{};
}

Result<Shown> show_rows(Session& session, TextOutput& out, const ReportOptions& options) {
  if (!options.times.empty()) {
    auto times = parse_times(options.times, session.features().environment);
    if (!times) return times.error();
    session.filter().times = std::move(*times);
  }
  ReportSink sink(session, options, has_colour(options.colour, out.is_for_person()));
  if (!session.layout().is_pipe && !options.header_only) {
    if (auto arranged = sink.arrange(); !arranged) return arranged.error();
  }
  if (options.header || options.header_only) {
    write_heads(out, session, options);
  } else if (!options.is_quiet) {
    out.text("# To display the perf.data header info, please use --header/--header-only options.\n#\n");
  }
  if (options.header_only) return Shown(Symbols::NotUsed);

  run_with_progress(session, sink, out);
  if (const auto failure = sink.failure()) return *failure;
  sink.report(session.diagnostics());
  if (sink.empty()) {
    Shown shown(Symbols::NotUsed);
    if (!session.diagnostics().incomplete()) {
      shown.notes.push_back("tacho: " + printable(options.reading.session.input) +
                            (session.filter().looks_at_start()
                                 ? ": no sample is one that --cpu and --time ask for"
                                 : ": it holds no samples"));
    }
    return shown;
  }
  sink.write_single_values(out);
  if (!options.is_quiet) out.text(fmt::format("#\n# Total Lost Samples: {}\n#\n", session.lost_samples()));
  sink.write(out);
  Shown shown(Symbols::Used);
  shown.notes = sink.notes();
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments) {
  ReportOptions options;
  return run_command(describe_report(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (options.stats) {
      return show_records(options.reading, [&options](auto& reader, auto& diagnostics, TextOutput& out) {
        write_stats(out, reader, diagnostics, options.reading.names);
        return Result<Shown>(Shown(Symbols::NotUsed));
      });
    }
    if (auto checked = check_patterns(options); !checked) return checked.error();
    if (options.has_levels && !options.fields.empty())
      return use_error("--hierarchy: columns of levels come from --sort; --fields cannot be used with it");
    if (options.graph.key != ChainKey::Function || options.sort.find("src") != std::string::npos ||
        options.fields.find("src") != std::string::npos) {
      options.reading.session.symbols.source_lines = symbolize::SourceLines::Yes;
    }
    // What has no name is shown by its address, which tells processes apart.
    options.reading.session.keeps_addresses = true;
    options.reading.session.keeps_callers = options.begins_with_caller();
    options.reading.session.symbols.stand_in = symbolize::StandIn::AtFirst;  // rows and graphs are perf's
    options.reading.session.wants_stacks = options.wants_children || options.graph.form != GraphForm::None ||
                                           options.parent || options.sort.find("parent") != std::string::npos;
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show_rows(session, out, options);
    });
  });
}

}  // namespace tacho::report
