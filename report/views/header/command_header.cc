// tacho header and tacho evlist: print the header of a capture and its events.
#include <algorithm>

#include "report/command.h"
#include "report/commands.h"
#include "report/decode/payload.h"
#include "report/decode/record_fields.h"
#include "report/output/field_sinks.h"
#include "report/perf_text/header_text.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// {"layout": {...}, "events": [...], "features": {"HOSTNAME": {...}, ...}}
void write_json(TextOutput& out, const Session& session) {
  JsonFields to(out);
  to.begin_object("layout");
  describe_layout(to, session.layout());
  to.end_object();
  to.begin_list("events");
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    to.begin_object({});
    describe_event(to, i, session.events());
    to.end_object();
  }
  to.end_list();
  to.begin_object("features");
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    if (!session.features().present[feature]) continue;
    const std::string_view name = format::feature_name(feature);
    to.begin_object(name.empty() ? "feature_" + std::to_string(feature) : std::string(name));
    describe_feature(to, feature, session.features());
    to.end_object();
  }
  to.end_object();
  to.finish();
  out.character('\n');
}

void write_text(TextOutput& out, const Session& session, Names names, HeaderDetail detail) {
  write_header(out, session.layout(), session.events(), session.features(), names, detail);
  if (session.layout().is_pipe) write_features(out, session.events(), session.features(), names, detail);
  write_own_features(out, session.features(), names);
}

bool is_tracepoint(const format::Event& event) { return event.attr.type == abi::kTracepoint; }

struct EvlistOptions {
  ReadingOptions reading;
  bool verbose = false, frequency = false, groups = false, trace_fields = false, as_json = false;
};

// The text after an event's name.
std::string details(const EvlistOptions& options, const format::Event& event, EventSchemas& schemas,
                    std::size_t index) {
  std::string text;
  if (options.verbose)
    text = ": " + attr_text(event.attr, AttrList::Evlist);
  else if (options.frequency)
    text = (event.attr.has(abi::kFreq) ? ": sample_freq=" : ": sample_period=") +
           std::to_string(event.attr.sample_period);
  if (!options.trace_fields) return text;
  text += text.empty() ? ": " : ", ";
  if (!is_tracepoint(event)) return text + "(not a tracepoint)";
  const PayloadSchema* schema = schemas.schema_of(index);
  if (schema == nullptr || schema->fields.empty()) return text + "(no trace field)";
  text += "trace_fields: ";
  for (const PayloadField& field : schema->fields) {
    if (&field != &schema->fields.front()) text += ',';
    text += printable(field.name, options.reading.names);
  }
  return text;
}

// Events on one line, the leader first.
struct EventLine {
  std::size_t members = 1;
  std::string_view name{};  // of a group that has one; lives as long as the session
};

// By index of the leader.
std::vector<EventLine> event_lines(const Session& session) {
  std::vector<EventLine> lines(session.events().size());
  for (const auto& group : session.features().environment.groups) {
    if (std::uint64_t{group.leader} + group.members > lines.size() || group.members == 0) continue;
    EventLine& line = lines[group.leader];
    line.members = group.members;
    if (line.name.empty() && group.name != "{anon_group}") line.name = group.name;
  }
  return lines;
}

void write_groups(TextOutput& out, const Session& session, Names names) {
  const auto name = [&](std::size_t index) { return printable(session.events()[index].name, names); };
  const auto lines = event_lines(session);
  for (std::size_t i = 0; i < lines.size(); i += lines[i].members) {
    const bool is_group = lines[i].members > 1;
    if (is_group) out.text(printable(lines[i].name, names) + '{');
    for (std::size_t k = 0; k < lines[i].members; ++k) {
      if (k > 0) out.character(',');
      out.text(name(i + k));
    }
    out.text(is_group ? "}\n" : "\n");
  }
}

// An object for each event, with the facts that the text shows with all options, and its ids.
void write_events_json(TextOutput& out, const Session& session) {
  EventSchemas schemas(session.events(), session.features());
  const auto lines = event_lines(session);
  std::size_t leader = 0;
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    if (i >= leader + lines[leader].members) leader = i;
    JsonFields to(out);
    describe_event(to, i, session.events());
    if (lines[leader].members > 1) {
      to.number("group_leader", leader);
      if (!lines[leader].name.empty()) to.text("group_name", lines[leader].name);
    }
    if (const PayloadSchema* schema = schemas.schema_of(i)) {
      to.begin_list("fields");
      for (const PayloadField& field : schema->fields) to.text({}, field.name);
      to.end_list();
    }
    to.finish();
    out.end_line();
  }
}

void write_events(TextOutput& out, const Session& session, const EvlistOptions& options) {
  EventSchemas schemas(session.events(), session.features());
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    const format::Event& event = session.events()[i];
    out.text(printable(event.name, options.reading.names));
    out.text(details(options, event, schemas, i) + '\n');
  }
}

}  // namespace

Result<cli::ExitStatus> run_header(const std::vector<std::string>& arguments) {
  ReadingOptions options;
  bool as_json = false, is_full = false;
  auto line =
      command_line("header",
                   "Shows the header of a capture: the host, the command, the events, and the files that are "
                   "attached to it.");
  add_input_options(line.options, options);
  line.options.push_back(flag("--json", "one JSON object, with the names of tacho dump", as_json));
  line.options.push_back(flag("-I,--show-info", "also CPU topology, caches and memory of the host", is_full));
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho header perf.data\n"
                     "  tacho header perf.data --json\n"
                     "\n");
  return run_view(line, arguments, options, [&](Session& session, TextOutput& out) -> Result<Shown> {
    read_head(session);
    if (as_json)
      write_json(out, session);
    else
      write_text(out, session, options.names, is_full ? HeaderDetail::Full : HeaderDetail::Brief);
    return Shown(Symbols::NotUsed);
  });
}

Result<cli::ExitStatus> run_evlist(const std::vector<std::string>& arguments) {
  EvlistOptions options;
  auto line = command_line("evlist", "Lists the events of a capture.");
  add_input_options(line.options, options.reading);
  line.options.push_back(as_perf_option(options.reading));
  line.options.push_back(flag("-v,--verbose", "with their attributes", options.verbose));
  line.options.push_back(flag("-F,--freq", "with their frequency or period", options.frequency));
  line.options.push_back(flag("-g,--group", "events of a group together, on one line", options.groups));
  line.options.push_back(
      flag("--trace-fields", "with the fields that a tracepoint's records have", options.trace_fields));
  line.options.push_back(
      flag("--json",
           "one JSON object an event: its name, attributes with the names of tacho dump, ids, "
           "group and the fields of its records",
           options.as_json));
  line.epilog.insert(
      0,
      "Examples:\n"
      "  tacho evlist perf.data\n"
      "  tacho evlist sched.data --trace-fields    with the fields for --where, --by and --sort\n"
      "\n");
  return run_command(line, arguments, [&options]() -> Result<cli::ExitStatus> {
    if (options.groups && (options.verbose || options.frequency || options.trace_fields))
      return use_error(
          "-g does not go together with -v, -F and --trace-fields; ask for them one after another");
    return show_session(options.reading, [&options](Session& session, TextOutput& out) -> Result<Shown> {
      read_head(session);
      if (options.as_json)
        write_events_json(out, session);
      else if (options.groups)
        write_groups(out, session, options.reading.names);
      else
        write_events(out, session, options);
      if (!options.as_json && !options.trace_fields && std::ranges::any_of(session.events(), is_tracepoint))
        out.text("# Tip: use 'perf evlist --trace-fields' to show fields for tracepoint events\n");
      return Shown(Symbols::NotUsed);
    });
  });
}

}  // namespace tacho::report
