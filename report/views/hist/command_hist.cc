#include "report/views/hist/command_hist.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "cli/nearest.h"
#include "report/decode/event_name.h"
#include "report/decode/payload.h"
#include "report/views/hist/distribution_text.h"

namespace tacho::report {
namespace {

struct Options {
  ReadingOptions reading;
  std::string event, field, by;
  std::uint64_t step = 0;  // 0: powers of two
};

cli::Option text_option(std::string names, std::string value, std::string help, std::string& target) {
  return {std::move(names), cli::Takes::Value, std::move(value), std::move(help),
          [&target](std::string_view text) -> Result<> {
            target = text;
            return Done{};
          }};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("hist",
                   "Shows how the values of a field are distributed, in powers of two: a field of a BPF "
                   "event's payload or of a tracepoint.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(text_option("--event", "NAME", "which event (default: the only one that has the field)",
                             options.event));
  rows.push_back(text_option(
      "--field", "NAME", "which field (default: the one tagged role:value, else the only one with a unit)",
      options.field));
  rows.push_back(text_option(
      "--by", "KEY", "a histogram for each comm, pid, tid, cpu, or value of another field", options.by));
  rows.push_back({"--linear", cli::Takes::Value, "STEP", "rows of equal width instead of powers of two",
                  [&options](std::string_view text) -> Result<> {
                    const auto step = cli::parse_number("--linear", text, 1, std::uint64_t{1} << 62);
                    if (!step) return step.error();
                    options.step = *step;
                    return Done{};
                  }});
  return line;
}

bool is_number(const PayloadField& field) { return field.kind != format::FieldKind::Text; }

// The field of one event that the options mean; null when it has none.
const PayloadField* find_field(const PayloadSchema& schema, std::string_view name) {
  const auto& fields = schema.fields;
  if (!name.empty()) {
    const auto field = std::ranges::find(fields, name, &PayloadField::name);
    return field != fields.end() && is_number(*field) ? &*field : nullptr;
  }
  const auto value = std::ranges::find_if(
      fields, [](const PayloadField& field) { return field.role == "value" && is_number(field); });
  if (value != fields.end()) return &*value;
  const auto has_unit = [](const PayloadField& field) { return !field.unit.empty() && is_number(field); };
  if (std::ranges::count_if(fields, has_unit) != 1) return nullptr;
  return &*std::ranges::find_if(fields, has_unit);
}

// How `--by` groups samples.
struct GroupRow {
  std::string_view name;
  std::string (*value)(const ResolvedSample&, Names);
};
constexpr GroupRow kGroups[] = {
    {"comm", [](const ResolvedSample& s, Names names) { return printable(s.comm, names); }},
    {"pid",
     [](const ResolvedSample& s, Names) { return std::to_string(static_cast<std::int32_t>(s.pid())); }},
    {"tid",
     [](const ResolvedSample& s, Names) { return std::to_string(static_cast<std::int32_t>(s.tid())); }},
    {"cpu",
     [](const ResolvedSample& s, Names) { return std::to_string(static_cast<std::int32_t>(s.raw->cpu)); }},
};

class HistSink : public Sink {
 public:
  HistSink(Session& session, const Options& options)
      : session_(&session), options_(&options), schemas_(session.events(), session.features()) {}

  // What is asked for, found among the events; they are all known once there are samples.
  Result<> choose() {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < session_->events().size(); ++i) {
      if (!options_->event.empty() && name_of(i) != options_->event) continue;
      const PayloadSchema* schema = schemas_.of(i);
      if (schema != nullptr && find_field(*schema, options_->field) != nullptr) fitting.push_back(i);
    }
    if (fitting.size() != 1) return explain(fitting);
    event_ = fitting[0];
    schema_ = schemas_.of(event_);
    field_ = find_field(*schema_, options_->field);
    return choose_group();
  }

  Flow on_sample(const ResolvedSample& sample) override {
    if (field_ == nullptr) {
      if (auto chosen = choose(); !chosen) {
        error = std::move(chosen.error());
        return Flow::Stop;
      }
    }
    if (sample.event_index != event_) return Flow::GoOn;
    const auto number = read_number(*field_, sample.raw->raw, sample.order);
    if (!number) {
      session_->diagnostics().add(
          format::Damage::BadRecord, format::Diagnostics::kNoOffset,
          "a payload of '" + name_of(event_) + "' that ends before its field '" + field_->name + "'");
      return Flow::GoOn;
    }
    groups_.try_emplace(group_of(sample), options_->step).first->second.add(*number);
    return Flow::GoOn;
  }

  void write(TextOutput& out) const {
    const Names names = options_->reading.names;
    std::string label = printable(field_->name, names);
    if (!field_->unit.empty() && field_->unit != field_->name)
      label += " (" + printable(field_->unit, names) + ")";
    for (const auto& [group, distribution] : groups_) {
      std::string heading = printable(name_of(event_), names) + ": " + printable(field_->name, names);
      if (!field_->unit.empty()) heading += " in " + printable(field_->unit, names);
      if (!options_->by.empty()) heading += ", " + printable(options_->by, names) + " " + group;
      out.text(fmt::format("{}{}, {} value{}\n", &group == &groups_.begin()->first ? "" : "\n", heading,
                           distribution.total(), distribution.total() == 1 ? "" : "s"));
      write_distribution(out, label, distribution.buckets());
      out.line_end();
    }
  }

  bool empty() const { return groups_.empty(); }
  std::optional<Error> error;

 private:
  std::string name_of(std::size_t event) const {
    return event_name(session_->events()[event], session_->features());
  }

  Result<> choose_group() {
    if (options_->by.empty()) return Done{};
    group_ = std::ranges::find(kGroups, options_->by, &GroupRow::name);
    if (group_ != std::end(kGroups)) return Done{};
    const auto field = std::ranges::find(schema_->fields, options_->by, &PayloadField::name);
    if (field == schema_->fields.end()) {
      return use_error("--by: there is no '" + options_->by + "'; take comm, pid, tid, cpu, or a field of '" +
                       name_of(event_) + "':" + list_fields(*schema_));
    }
    group_field_ = &*field;
    return Done{};
  }

  std::string group_of(const ResolvedSample& sample) const {
    if (options_->by.empty()) return {};
    if (group_field_ == nullptr) return group_->value(sample, options_->reading.names);
    const auto value = read_field(*group_field_, sample.raw->raw, sample.order);
    return value ? show_value(*group_field_, *value, options_->reading.names) : std::string("?");
  }

  static std::string list_fields(const PayloadSchema& schema) {
    std::string list;
    for (const PayloadField& field : schema.fields) {
      if (is_number(field)) list += ' ' + field.name + (field.unit.empty() ? "" : " (" + field.unit + ")");
    }
    return list.empty() ? " none that is a number" : list;
  }

  // Why no single field is meant, with what there is to choose from.
  Error explain(const std::vector<std::size_t>& fitting) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < session_->events().size(); ++i) names.push_back(name_of(i));
    const std::string& event = options_->event;
    if (!event.empty() && std::ranges::find(names, event) == names.end())
      return use_error("--event: there is no event '" + event + "'" + cli::suggestion(event, names));
    std::string choices;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const PayloadSchema* schema = schemas_.of(i);
      if (schema != nullptr && (event.empty() || names[i] == event))
        choices += (choices.empty() ? " " : "; ") + names[i] + ":" + list_fields(*schema);
    }
    if (fitting.size() > 1)
      return use_error("several events have such a field; choose with --event NAME:" + choices);
    if (choices.empty()) {
      return use_error(
          "this capture describes no payload: its events are neither tracepoints nor BPF events of an "
          "object that declares them (tacho/event.h)");
    }
    const std::string wanted = options_->field.empty()
                                   ? "no single field with a unit or role:value"
                                   : "no field '" + options_->field + "' that is a number";
    const std::string where = options_->event.empty() ? "" : " in event '" + options_->event + "'";
    return use_error("there is " + wanted + where + "; choose with --field NAME, --event NAME:" + choices);
  }

  Session* session_;
  const Options* options_;
  EventSchemas schemas_;
  std::size_t event_ = 0;
  const PayloadSchema* schema_ = nullptr;
  const PayloadField* field_ = nullptr;  // null: not chosen yet
  const GroupRow* group_ = nullptr;
  const PayloadField* group_field_ = nullptr;
  std::map<std::string, Distribution> groups_;  // by --by's value
};

}  // namespace

Result<cli::ExitStatus> run_hist(const std::vector<std::string>& arguments) {
  Options options;
  const auto parsed = cli::parse(describe(options), arguments);
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  options.reading.session.wants_stacks = false;
  auto session = Session::open(options.reading.session);
  if (!session) return std::move(session.error());

  HistSink sink(*session, options);
  session->run(sink);
  if (sink.error) return std::move(*sink.error).in(printable(options.reading.session.input));
  TextOutput out(STDOUT_FILENO);
  if (sink.empty()) {
    std::fprintf(stderr, "tacho: %s: no sample of that event\n",
                 printable(options.reading.session.input).c_str());
  } else {
    sink.write(out);
  }
  return finish(*session, out, options.reading, Symbols::NotUsed);
}

}  // namespace tacho::report
