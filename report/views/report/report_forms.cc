#include "report/views/report/report_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "report/profile/sort_keys.h"
#include "report/views/report/call_graph_text.h"

namespace tacho::report {
namespace {

RawValue number(std::uint64_t value) { return {RawValue::Kind::Number, value, {}}; }
RawValue address(std::uint64_t value) { return {RawValue::Kind::Address, value, {}}; }
RawValue text(std::string_view value) { return {RawValue::Kind::Text, 0, std::string(value)}; }

RawValue of_fact(Show show, Row row) { return number(show.fact(row)); }
RawValue of_flag(Show show, Row row) { return number(show.fact(row) != 0 ? 1 : 0); }
RawValue of_address(Show show, Row row) { return address(show.fact(row)); }
RawValue of_samples(Show show, Row row) { return number(show.fact(row) * row.samples); }
RawValue of_thread(Show, Row row) { return number(row.thread->tid); }
RawValue of_nothing(Show, Row) { return {}; }
RawValue of_time(Show show, Row row) { return show.fact(row) == kUntimed ? RawValue() : of_fact(show, row); }
// Unknown indices are -1 in the capture.
RawValue of_index(Show show, Row row) { return show.fact(row) == ~0U ? RawValue() : number(show.fact(row)); }
RawValue of_function(Show, Row row) {
  return row.function->name().empty() ? address(row.function->start) : text(row.function->shown_name());
}
RawValue of_size(Show, Row row) {
  return row.function->name().empty() ? RawValue() : number(row.function->end() - row.function->start);
}
RawValue of_location(Show show, Row row) {
  const FactAddress at = fact_address(show, show.fact(row));
  return at.has_name() ? text(at.function->shown_name()) : address(at.address);
}
RawValue of_branch_address(Show show, Row row) {
  return address(fact_address(show, show.fact(row)).location->ip.value);
}
// With the address, which distinguishes rows.
RawValue of_touched(Show show, Row row) {
  const FactAddress at = fact_address(show, show.fact(row));
  const std::uint64_t ip = at.location->ip.value;
  return at.has_name() ? text(fmt::format("{}+{:#x}", at.function->shown_name(), ip - at.runtime_start()))
                       : address(ip);
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

// Keys that are not listed here have their text as value.
constexpr RawRow kRawRows[] = {
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
    {"time", of_time},
    {"code_page_size", of_fact},
    {"local_ins_lat", of_fact},
    {"ins_lat", of_samples},
    {"local_p_stage_cyc", of_fact},
    {"p_stage_cyc", of_samples},
    {"parallelism", of_fact},
    {"addr", [](Show, Row row) { return address(row.function->first_ip); }},
    {"symbol_from", of_location},
    {"symbol_to", of_location},
    {"mispredict", of_prediction},
    {"abort", of_flag},
    {"in_tx", of_flag},
    {"cycles", of_fact},
    {"addr_from", of_branch_address},
    {"addr_to", of_branch_address},
    {"symbol_daddr", of_touched},
    {"symbol_iaddr", of_touched},
    {"phys_daddr", of_address},
    {"blocked", of_blocked},
    {"data_page_size", of_fact},
};

void describe_value(JsonFields& to, std::string_view name, const RawValue& value) {
  switch (value.kind) {
    case RawValue::Kind::Number:
      return to.number(name, value.number);
    case RawValue::Kind::Address:
      return to.hex(name, value.number);
    case RawValue::Kind::Text:
      return to.text(name, value.text);
    case RawValue::Kind::Missing:
      return to.json(name, "null");
  }
}

}  // namespace

RawValue raw_value(const KeyUse& use, const SampleFacts& facts, const RowFacts& row) {
  const KeyShow show{use, facts};
  const auto known = std::ranges::find(kRawRows, use.key->name, &RawRow::key);
  if (use.field == nullptr && known != std::end(kRawRows)) return known->value(show, row);
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

void CsvLines::cell(std::string_view text) {
  if (!is_first_) out_->character(',');
  is_first_ = false;
  out_->text(text);
}

void CsvLines::end_line() {
  out_->text("\r\n");
  out_->line_end();
  is_first_ = true;
}

void CsvLines::real(double value) { cell(fmt::format("{}", value)); }

void CsvLines::value(const RawValue& value) {
  switch (value.kind) {
    case RawValue::Kind::Number:
      return number(value.number);
    case RawValue::Kind::Address:
      return cell(fmt::format("{:#x}", value.number));
    case RawValue::Kind::Text:
      return text(value.text);
    case RawValue::Kind::Missing:
      return empty();
  }
}

void describe_recording(JsonFields& to, Session& session, std::string_view input) {
  const auto& host = session.features().environment;
  to.begin_object("capture");
  to.text("file", input);
  for (const auto& [name, value] :
       {std::pair("hostname", &host.hostname), std::pair("os_release", &host.os_release),
        std::pair("arch", &host.arch), std::pair("recorder_version", &host.version),
        std::pair("cpu_description", &host.cpu_description)}) {
    if (*value) to.text(name, **value);
  }
  if (host.cpus_online) to.number("cpus_online", *host.cpus_online);
  if (host.total_memory_kib) to.number("memory_kib", *host.total_memory_kib);
  if (!host.command_line.empty()) {
    to.begin_list("command_line");
    for (const std::string& word : host.command_line) to.text("", word);
    to.end_list();
  }
  if (host.sample_time && host.sample_time->first != kUntimed) {
    to.number("first_sample", host.sample_time->first);
    to.number("last_sample", host.sample_time->second);
  }
  to.end_object();
}

void describe_totals(JsonFields& to, std::string_view name, Session& session, const RowBlock& block,
                     std::size_t member) {
  const Weight &all = block.entries->total(member), &filtered = block.entries->filtered(member);
  to.begin_object(name);
  to.text("event", session.events()[block.events->leader + member].name);
  to.number("samples", all.samples);
  to.number("period", block.entries->whole(member, false));
  to.number("filtered_samples", filtered.samples);
  to.number("filtered_period", block.entries->whole(member, false) - block.entries->whole(member, true));
  to.number("hundred_percent", block.totals->weights[member]);
  to.end_object();
}

void describe_row_keys(JsonFields& to, const std::vector<RawColumn>& columns, const SampleFacts& facts,
                       const RowBlock& block, EntryId row) {
  const RowFacts row_facts = block.entries->facts(row);
  to.begin_object("keys");
  for (const RawColumn& column : columns) {
    if (is_of_block(*column.use, *block.events))
      describe_value(to, column.name, raw_value(*column.use, facts, row_facts));
  }
  to.end_object();
  const bool has_names =
      std::ranges::any_of(columns, [](const RawColumn& one) { return one.use->key->of == KeyOf::Function; });
  const Function* const function = has_names ? row_facts.function : nullptr;
  if (function != nullptr && function->is_unsure()) to.flag("unsure", true);
  if (function != nullptr && function->is_unnamed) to.text("kind", "unnamed");
}

namespace {

using Kind = Column::Kind;

// The rows of a report as CSV (--csv).
class ReportCsv : public RowForm {
 public:
  ReportCsv(TextOutput& out, const RowSource& source)
      : lines_(out, source.text->names), source_(source), columns_(raw_columns(*source.columns)) {}

  void begin_rows() override {
    lines_.text("event");
    for (const RawColumn& column : columns_) lines_.text(column.name);
    for (const std::string of : {"", "children_"}) {
      if (!of.empty() && !source_.text->has_children) break;
      for (const char* const name : {"samples", "period", "percent"}) lines_.text(of + name);
      if (!source_.has_latency) continue;
      for (const char* const name : {"latency", "latency_percent"}) lines_.text(of + name);
    }
    lines_.end_line();
  }

  void write(const RowBlock& block) override {
    for (const EntryId row : block.rows) {
      const RowFacts facts = block.entries->facts(row);
      for (std::size_t member = 0; member < block.events->members; ++member)
        write_row(block, row, facts, member);
    }
  }

  void end_rows() override {}

 private:
  void write_row(const RowBlock& block, EntryId row, const RowFacts& facts, std::size_t member) {
    lines_.text(source_.session->events()[block.events->leader + member].name);
    for (const RawColumn& column : columns_) {
      is_of_block(*column.use, *block.events) ? lines_.value(raw_value(*column.use, *source_.facts, facts))
                                              : lines_.empty();
    }
    weights(block, row, member, Kind::Overhead);
    if (source_.text->has_children) weights(block, row, member, Kind::Children);
    lines_.end_line();
  }

  void weights(const RowBlock& block, EntryId row, std::size_t member, Kind kind) {
    const Entries::Totals& totals = block.entries->totals(row, member);
    const std::uint64_t period = block.entries->value(kind, row, member);
    lines_.number((kind == Kind::Overhead ? totals.self : totals.children).samples);
    lines_.number(period);
    lines_.real(percent_of(period, block.totals->weights[member]));
    if (!source_.has_latency) return;
    const Kind latency = kind == Kind::Overhead ? Kind::Latency : Kind::LatencyChildren;
    const std::uint64_t value = block.entries->value(latency, row, member);
    lines_.number(value);
    lines_.real(percent_of(value, block.totals->latencies[member]));
  }

  CsvLines lines_;
  RowSource source_;
  std::vector<RawColumn> columns_;
};

constexpr std::uint64_t kVersion = 1;  // of the JSON form

std::string_view mode_name(ReportMode mode) {
  if (mode == ReportMode::Branches) return "branches";
  return mode == ReportMode::Memory ? "memory" : "samples";
}

// The rows of a report as JSON (--json).
class ReportJson : public RowForm {
 public:
  ReportJson(TextOutput& out, const RowSource& source)
      : out_(&out), to_(out), source_(source), columns_(raw_columns(*source.columns)) {}

  void begin_rows() override {
    to_.number("tacho_report", kVersion);
    to_.text("mode", mode_name(source_.facts->options().mode));
    describe_recording(to_, *source_.session, source_.input);
    to_.number("lost_samples", source_.session->lost_samples());
    to_.flag("incomplete", source_.session->diagnostics().incomplete());
    if (source_.text->graph) {
      to_.text("call_order", source_.text->graph->order == ChainOrder::Caller ? "caller" : "callee");
      to_.real("call_limit_percent", source_.text->graph->min_percent);
    }
    to_.begin_list("reports");
  }

  void write(const RowBlock& block) override {
    line_end();
    to_.begin_object("");
    to_.begin_list("events");
    for (std::size_t member = 0; member < block.events->members; ++member)
      describe_totals(to_, "", *source_.session, block, member);
    to_.end_list();
    to_.begin_list("rows");
    std::vector<GraphRow> graph_rows;
    std::optional<RowGraphs> graphs;
    if (source_.text->graph) {
      const Kind kind = source_.text->has_children ? Kind::Children : Kind::Overhead;
      graph_rows.reserve(block.rows.size());
      for (const EntryId& row : block.rows)
        graph_rows.push_back({{&row, 1}, block.entries->value(kind, row, 0)});
      const GraphTotals totals{block.entries->whole(0, false), block.totals->weights[0]};
      graphs.emplace(*source_.text, *block.entries, source_.tree->functions(), totals, graph_rows);
    }
    for (const EntryId row : block.rows) {
      line_end();
      to_.begin_object("");
      describe_row(block, row);
      if (graphs && graphs->build_next(*source_.tree)) describe_calls(*source_.tree);
      to_.end_object();
    }
    line_end();
    to_.end_list();
    to_.end_object();
  }

  void end_rows() override {
    line_end();
    to_.end_list();
    to_.finish();
    out_->character('\n');
  }

 private:
  void describe_row(const RowBlock& block, EntryId row) {
    describe_row_keys(to_, columns_, *source_.facts, block, row);
    describe_weights(block, row, Kind::Overhead);
    if (source_.text->has_children) describe_weights(block, row, Kind::Children);
  }

  void describe_weights(const RowBlock& block, EntryId row, Kind kind) {
    const bool is_self = kind == Kind::Overhead;
    to_.begin_list(is_self ? "self" : "children");
    for (std::size_t member = 0; member < block.events->members; ++member) {
      const Entries::Totals& totals = block.entries->totals(row, member);
      const std::uint64_t period = block.entries->value(kind, row, member);
      to_.begin_object("");
      to_.number("samples", (is_self ? totals.self : totals.children).samples);
      to_.number("period", period);
      to_.real("percent", percent_of(period, block.totals->weights[member]));
      if (block.entries->latency() != nullptr) {
        const Kind latency = is_self ? Kind::Latency : Kind::LatencyChildren;
        const std::uint64_t value = block.entries->value(latency, row, member);
        to_.number("latency", value);
        to_.real("latency_percent", percent_of(value, block.totals->latencies[member]));
      }
      to_.end_object();
    }
    to_.end_list();
  }

  // Nodes that are open are on an explicit stack: call chains can be long.
  void describe_calls(const CallTree& tree) {
    struct Level {
      const CallNode* node;
      std::size_t next = 0;
    };
    std::vector<Level> levels{{&tree.nodes()[0]}};
    to_.begin_list("calls");
    while (!levels.empty()) {
      Level& level = levels.back();
      const auto children = tree.children(*level.node);
      if (level.next < children.size()) {
        const CallNode& child = children[level.next++];
        begin_node(child);
        levels.push_back({&child});
        continue;
      }
      to_.end_list();
      levels.pop_back();
      if (!levels.empty()) to_.end_object();
    }
  }

  // Writes a node up to the list of its children, which stays open.
  void begin_node(const CallNode& node) {
    to_.begin_object("");
    to_.begin_list("frames");
    for (const FunctionId frame : node.frames) describe_frame((*source_.functions)[frame]);
    to_.end_list();
    to_.number("samples", node.samples);
    to_.number("period", node.period);
    to_.number("ended_samples", node.own_samples);
    to_.number("ended_period", node.own_period);
    to_.begin_list("calls");
  }

  void describe_frame(const Function& function) {
    to_.begin_object("");
    if (function.name().empty()) {
      to_.hex("address", function.start);
    } else {
      to_.text("symbol", function.shown_name());
    }
    if (function.module != nullptr) to_.text("dso", function.module->path);
    if (function.is_unsure()) to_.flag("unsure", true);
    if (function.is_unnamed) to_.text("kind", "unnamed");
    if (function.has_line) to_.text("line", function.line());
    if (function.is_inlined) to_.flag("inlined", true);
    to_.end_object();
  }

  // Between two values: the buffer may be flushed.
  void line_end() {
    out_->character('\n');
    out_->line_end();
  }

  TextOutput* out_;
  JsonFields to_;
  RowSource source_;
  std::vector<RawColumn> columns_;
};

}  // namespace

std::unique_ptr<RowForm> make_csv_form(TextOutput& out, const RowSource& source) {
  return std::make_unique<ReportCsv>(out, source);
}

std::unique_ptr<RowForm> make_json_form(TextOutput& out, const RowSource& source) {
  return std::make_unique<ReportJson>(out, source);
}

}  // namespace tacho::report
