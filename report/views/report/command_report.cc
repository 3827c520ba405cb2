#include "report/views/report/command_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <unordered_set>

#include "report/decode/event_name.h"
#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"
#include "report/output/text_table.h"
#include "report/perf_text/header_text.h"
#include "report/perf_text/stats_text.h"
#include "report/profile/histogram.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

struct Options {
  ReadingOptions reading;
  std::vector<const SortKey*> keys;  // empty: the default for the events
  bool wants_graph = false;
  bool header = false, header_only = false;
  HeaderDetail detail = HeaderDetail::Brief;
  bool stats = false;
};

cli::CommandLine describe(Options& options) {
  auto line = command_line(
      "report",
      "Counts samples by thread, module and function, heaviest first, as perf report --stdio -g none "
      "does. Rows are weighed by the event's period; where all periods are 0, as in BPF output, by "
      "the number of samples.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(accepted("--stdio", cli::Takes::Nothing, "print text; the only form there is"));
  std::string known;
  for (const SortKey& key : sort_keys())
    known += fmt::format("\n{:6} {}", key.names.substr(0, key.names.find(',')), key.help);
  rows.push_back(
      {"-s,--sort", cli::Takes::Value, "KEYS",
       "by what rows are told apart (default: comm,dso,sym; trace when all events are tracepoints):" + known,
       [&options](std::string_view text) -> Result<> {
         auto keys = parse_sort_keys(text);
         if (!keys) return keys.error();
         options.keys = std::move(*keys);
         return Done{};
       }});
  rows.push_back({"-g,--call-graph", cli::Takes::Optional, "WHAT", "none; call graphs are not drawn yet",
                  [&options](std::string_view text) -> Result<> {
                    options.wants_graph = text != "none";
                    return Done{};
                  }});
  rows.push_back(accepted("--no-children", cli::Takes::Nothing,
                          "count a sample for its own function only; what is done anyway"));
  rows.push_back({"--children", cli::Takes::Nothing, "", "accepted; children are not added up yet",
                  [&options](std::string_view) -> Result<> {
                    options.wants_graph = true;
                    return Done{};
                  }});
  rows.push_back(accepted("--group", cli::Takes::Nothing,
                          "show the events of a group side by side; what is done anyway"));
  rows.push_back(flag("--header", "print the capture's header first", options.header));
  rows.push_back(flag("--header-only", "print the capture's header and nothing else", options.header_only));
  rows.push_back({"-I,--show-info", cli::Takes::Nothing, "",
                  "with --header: also topology, caches and memory of the host",
                  [&options](std::string_view) -> Result<> {
                    options.detail = HeaderDetail::Full;
                    return Done{};
                  }});
  rows.push_back(flag("--stats", "only count records by type and samples by event", options.stats));
  return line;
}

// perf's -g takes the next word for its value when that is no option: `-g none`.
std::vector<std::string> with_graph_value_joined(const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_graph = arguments[i] == "-g" || arguments[i] == "--call-graph";
    if (is_graph && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-')) {
      joined.push_back("--call-graph=" + arguments[++i]);
    } else {
      joined.push_back(arguments[i]);
    }
  }
  return joined;
}

// Events that share their rows: a group, or one alone.
struct EventBlock {
  std::size_t leader = 0;
  std::size_t members = 1;
};

class ReportSink : public Sink {
 public:
  ReportSink(Session& session, const Options& options) : session_(&session), options_(&options) {}

  Flow on_sample(const ResolvedSample& sample) override {
    if (blocks_.size() != session_->events().size()) arrange();
    const EventBlock block = blocks_[sample.event_index];
    auto& histogram = histograms_.try_emplace(block.leader, keys_, block.members).first->second;
    RowFacts facts{sample.comm, sample.thread, nullptr, sample.raw->cpu, {}};
    if (needs_place_) facts.place = &place_of(*sample.location);
    if (needs_trace_) facts.trace = trace_of(sample);
    histogram.add(facts, sample.event_index - block.leader, sample.period);
    return Flow::GoOn;
  }

  bool empty() const { return histograms_.empty(); }

  void write(TextOutput& out) {
    for (const auto& [leader, histogram] : histograms_) {
      write_title(out, leader, histogram);
      write_rows(out, histogram);
      out.text("\n\n");
    }
  }

 private:
  static bool is_tracepoint(const format::Event& event) { return event.attr.type == abi::kTracepoint; }

  // The events are all known once there are samples.
  void arrange() {
    const auto& events = session_->events();
    blocks_.clear();
    for (std::size_t i = 0; i < events.size(); ++i) blocks_.push_back({i, 1});
    for (const auto& group : session_->features().environment.groups) {
      const std::uint64_t end = std::uint64_t{group.leader} + group.members;
      if (group.members < 2 || end > events.size()) continue;
      for (std::size_t i = group.leader; i < end; ++i) blocks_[i] = {group.leader, group.members};
    }
    keys_ = options_->keys;
    if (keys_.empty()) {
      const bool only_tracepoints = std::ranges::all_of(events, is_tracepoint);
      keys_ = *parse_sort_keys(only_tracepoints ? "trace" : "comm,dso,sym");
    }
    needs_trace_ = needs_place_ = false;
    for (const SortKey* key : keys_) {
      if (key->names == "trace") needs_trace_ = true;
      if (key->names == "dso" || key->names.starts_with("sym")) needs_place_ = true;
    }
  }

  const CodePlace& place_of(const Location& location) {
    if (places_.size() <= location.number)
      places_.resize(std::max<std::size_t>(location.number + 1, places_.size() * 2));
    std::optional<CodePlace>& known = places_[location.number];
    if (!known) known = make_place(location);
    return *known;
  }

  CodePlace make_place(const Location& location) {
    const symbolize::Frame& frame = session_->frame(location);
    CodePlace place;
    if (frame.module != nullptr) {
      place.module_name = frame.module->short_name;
      place.module = module_numbers_.try_emplace(place.module_name, module_numbers_.size() + 1).first->second;
    }
    place.function = frame.function;
    const bool is_known = !frame.function.empty();
    place.start = is_known ? frame.function_start : frame.shown_address;
    place.end = is_known ? frame.function_end : 0;
    place.level = location.cpumode == abi::kCpumodeKernel ? 'k'
                  : location.cpumode == abi::kCpumodeUser ? '.'
                                                          : 'H';
    // perf tells functions apart by module and place, but unknown ones by their address alone.
    const SymbolIdentity identity{is_known, is_known ? place.module : 0, place.start, place.end};
    place.symbol = symbol_numbers_.try_emplace(identity, symbol_numbers_.size()).first->second;
    return place;
  }

  std::string_view trace_of(const ResolvedSample& sample) {
    if (!is_tracepoint(sample.event())) return {};
    if (!traces_) traces_.emplace(session_->features().tracing, TracepointText::FindFunction());
    if (!schemas_) schemas_.emplace(session_->events(), session_->features());
    auto text = traces_->of(sample.event().attr.config, sample.raw->raw, sample.raw->cpu, sample.order);
    std::string fields;
    if (!text) {
      if (const PayloadSchema* schema = schemas_->of(sample.event_index)) {
        fields = show_payload(*schema, sample.raw->raw, sample.order, Names::Raw);
      }
      text = fields;
    }
    return *texts_.emplace(*text).first;
  }

  void write_title(TextOutput& out, std::size_t leader, const Histogram& histogram) {
    std::uint64_t samples = histogram.samples();
    char unit = ' ';
    for (const char larger : {'K', 'M', 'G'}) {
      if (samples <= 1000) break;
      samples /= 1000;
      unit = larger;
    }
    std::string names;
    for (std::size_t i = 0; i < histogram.members(); ++i) {
      if (i > 0) names += ", ";
      names += event_name(session_->events()[leader + i], session_->features());
    }
    const bool is_group = histogram.members() > 1;
    if (is_group) names = group_name(leader) + " { " + names + " }";
    out.text(fmt::format("# Samples: {}{} of event{} '{}'\n# Event count (approx.): {}\n#\n", samples, unit,
                         is_group ? "s" : "", printable(names, options_->reading.names), histogram.total()));
  }

  std::string group_name(std::size_t leader) const {
    for (const auto& group : session_->features().environment.groups) {
      if (group.leader == leader && !group.name.empty() && group.name != "{anon_group}") return group.name;
    }
    return "anon group";
  }

  void write_rows(TextOutput& out, const Histogram& histogram) const {
    constexpr std::size_t kPercentWidth = 8;
    const Names names = options_->reading.names;
    const auto rows = histogram.sorted_rows();
    std::vector<TableColumn> columns{{"Overhead", kPercentWidth * histogram.members(), true, false}};
    for (const SortKey* key : keys_) {
      std::size_t width = key->header.size();
      for (const HistogramRow& row : rows) width = std::max(width, key->width(row.facts, names));
      columns.push_back({std::string(key->header), width, false, key->is_cut});
    }
    const TextTable table(std::move(columns));
    table.write_head(out);
    for (const HistogramRow& row : rows) {
      std::vector<std::string> cells(1);
      for (std::size_t i = 0; i < histogram.members(); ++i) {
        const auto total = static_cast<double>(histogram.total(i));
        cells[0] +=
            fmt::format(" {:6.2f}%", total == 0 ? 0.0 : 100.0 * static_cast<double>(row.weights[i]) / total);
      }
      for (const SortKey* key : keys_) cells.push_back(key->show(row.facts, names));
      table.write_row(out, cells);
      out.line_end();
    }
  }

  struct SymbolIdentity {
    bool is_known = false;
    std::uint32_t module = 0;
    std::uint64_t start = 0, end = 0;
    auto operator<=>(const SymbolIdentity&) const = default;
  };
  Session* session_;
  const Options* options_;
  std::vector<EventBlock> blocks_;  // by event
  std::vector<const SortKey*> keys_;
  bool needs_place_ = false, needs_trace_ = false;
  std::map<std::size_t, Histogram> histograms_;  // by leader
  std::deque<std::optional<CodePlace>> places_;  // by location number
  std::map<std::string_view, std::uint32_t> module_numbers_;
  std::map<SymbolIdentity, std::uint32_t> symbol_numbers_;
  std::optional<TracepointText> traces_;
  std::optional<EventSchemas> schemas_;
  std::unordered_set<std::string> texts_;
};

bool has_chains(const format::EventSet& events) {
  return std::ranges::any_of(
      events, [](const format::Event& event) { return event.attr.samples(abi::kSampleCallchain); });
}

// The header, and of a pipe what its first records say.
void write_heads(TextOutput& out, Session& session, const Options& options) {
  const Names names = options.reading.names;
  write_header(out, session.layout(), session.events(), session.features(), names, options.detail);
  if (!session.layout().is_pipe || !options.header_only) return;
  read_head(session);
  write_features(out, session.events(), session.features(), names, options.detail);
}

// Without a session: nothing is ordered or resolved.
Result<cli::ExitStatus> show_stats(const ReadingOptions& options) {
  format::Diagnostics diagnostics;
  auto reader = format::CaptureReader::open(options.session.input, diagnostics);
  if (!reader) return std::move(reader.error());
  TextOutput out(STDOUT_FILENO);
  write_stats(out, *reader, diagnostics, options.names);
  return finish(diagnostics, out, options);
}

}  // namespace

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments) {
  Options options;
  const auto parsed = cli::parse(describe(options), with_graph_value_joined(arguments));
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  if (options.stats) return show_stats(options.reading);
  options.reading.session.wants_stacks = false;
  auto session = Session::open(options.reading.session);
  if (!session) return std::move(session.error());

  TextOutput out(STDOUT_FILENO);
  if (options.header || options.header_only) {
    write_heads(out, *session, options);
  } else {
    out.text("# To display the perf.data header info, please use --header/--header-only options.\n#\n");
  }
  if (options.header_only) return finish(*session, out, options.reading, Symbols::NotUsed);

  ReportSink sink(*session, options);
  session->run(sink);
  if (sink.empty()) {
    if (auto done = finish(*session, out, options.reading, Symbols::NotUsed); !done || *done != cli::kWhole)
      return done;
    std::fprintf(stderr, "tacho: %s: it holds no samples\n",
                 printable(options.reading.session.input).c_str());
    return cli::kWhole;
  }
  out.text(fmt::format("#\n# Total Lost Samples: {}\n#\n", session->lost_samples()));
  sink.write(out);
  out.text("#\n# (Tip: call chains become a flame graph with: tacho folded -i FILE | flamegraph.pl)\n#\n");
  if (options.wants_graph && has_chains(session->events())) {
    std::fprintf(stderr, "tacho report: call graphs are not drawn yet; these are the rows of -g none\n");
  }
  return finish(*session, out, options.reading, Symbols::Used);
}

}  // namespace tacho::report
