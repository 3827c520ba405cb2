#include "report/query/field_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/message_text.h"
#include "cli/nearest.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

const PayloadField* value_field(const PayloadSchema& schema) {
  const auto& fields = schema.fields;
  if (const PayloadField* const value = field_with_role(schema, "value"); value != nullptr) return value;
  const auto is_counted = [](const PayloadField& field) {
    return field.role == "count" || field.role == "sum";
  };
  if (std::ranges::any_of(fields, is_counted)) return nullptr;
  const auto has_unit = [](const PayloadField& field) {
    return !field.unit.empty() && field.kind != format::FieldKind::Text;
  };
  if (std::ranges::count_if(fields, has_unit) != 1) return nullptr;
  return &*std::ranges::find_if(fields, has_unit);
}

namespace {

using format::FieldKind;

// The event's field of that name, or its default field; null when it has none.
const PayloadField* find_field(const PayloadSchema& schema, std::string_view name) {
  const auto& fields = schema.fields;
  if (!name.empty()) return field_named(schema, name);
  if (const PayloadField* const value = value_field(schema); value != nullptr) return value;
  // The only argument of a probe has neither a unit nor a role. perf's fields of probes begin with "__".
  const auto is_own = [](const PayloadField& one) { return !one.name.starts_with("__"); };
  if (std::ranges::count_if(fields, is_own) != 1) return nullptr;
  const auto only = std::ranges::find_if(fields, is_own);
  return only->role.empty() ? &*only : nullptr;
}

std::string list_fields(const PayloadSchema& schema) {
  std::string list;
  for (const PayloadField& field : schema.fields)
    list += ' ' + field.name + (field.unit.empty() ? "" : " (" + field.unit + ")");
  return list.empty() ? " no fields" : list;
}

// The error when no field or several fields fit, with the choices.
Error choice_error(const std::vector<std::string>& names, EventSchemas& schemas, const std::string& event,
                   const std::string& field, bool are_several) {
  const EventChoice choice = choose_events(parse_name_list(event), names);
  if (!event.empty() && choice.unknown) return not_one_event("--event", *choice.unknown, names);
  std::string choices;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PayloadSchema* schema = schemas.schema_of(i);
    if (schema != nullptr && (event.empty() || choice.chosen[i]))
      choices.append(choices.empty() ? " " : "; ").append(names[i]).append(":").append(list_fields(*schema));
  }
  if (are_several)
    return use_error(fmt::format("several events have {}; choose with --event NAME:{}",
                                 field.empty() ? "a default field" : "such a field", choices));
  if (choices.empty() && !event.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (schemas.schema_of(i) != nullptr)
        return use_error("--event: the fields of '" + cli::shortened(event) +
                         "' are not described; those of '" + cli::shortened(names[i]) + "' are");
  }
  if (choices.empty()) {
    return use_error(
        "this capture describes no payload: its events are neither tracepoints nor BPF events of an "
        "object that declares them (tacho/event.h)");
  }
  const std::string wanted =
      field.empty() ? "no single field with a unit or role:value" : "no field '" + field + "'";
  const std::string where = event.empty() ? "" : " in event '" + event + "'";
  return use_error("there is " + wanted + where + "; choose with --field NAME, --event NAME:" + choices);
}

// "; for example: tacho hist -i FILE --event E --field F"; empty when no field fits.
std::string example(const std::vector<std::string>& names, EventSchemas& schemas, const std::string& event,
                    const std::string& field, std::span<const ChosenField> fitting,
                    std::string_view command) {
  const auto line = [&](const std::string& of, std::string_view own) {
    std::string text = fmt::format("; for example: {} --event {}", command, cli::shell_word(of));
    if (!own.empty()) text += fmt::format(" --field {}", cli::shell_word(own));
    return text;
  };
  if (!fitting.empty()) return line(names[fitting[0].event], field);
  const EventChoice choice = choose_events(parse_name_list(event), names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PayloadSchema* const schema = event.empty() || choice.chosen[i] ? schemas.schema_of(i) : nullptr;
    if (schema == nullptr) continue;
    // The common_* fields of tracepoints are of little use.
    const auto own = std::ranges::find_if(
        schema->fields, [](const PayloadField& one) { return !one.name.starts_with("__"); });
    if (own != schema->fields.end()) return line(names[i], own->name);
  }
  return {};
}

}  // namespace

bool is_counted_by_value(const PayloadField& field) {
  return field.kind == FieldKind::Text || field.kind == FieldKind::Bool ||
         (field.kind == FieldKind::Enum && !field.enumerators.empty());
}

Result<ChosenField> choose_field(const std::vector<std::string>& names, EventSchemas& schemas,
                                 const std::string& event, const std::string& field,
                                 std::string_view command) {
  std::vector<ChosenField> fitting;
  const EventChoice choice = choose_events(parse_name_list(event), names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!event.empty() && !choice.chosen[i]) continue;
    const PayloadSchema* const schema = schemas.schema_of(i);
    const PayloadField* const found = schema == nullptr ? nullptr : find_field(*schema, field);
    if (found != nullptr) fitting.push_back({i, schema, found});
  }
  if (fitting.size() != 1) {
    Error error = choice_error(names, schemas, event, field, !fitting.empty());
    error.what += example(names, schemas, event, field, fitting, command);
    return error;
  }
  return fitting[0];
}

}  // namespace tacho::report
