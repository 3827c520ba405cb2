#include "report/views/hist/field_choice.h"

#include <algorithm>

#include "cli/nearest.h"
#include "report/query/value_field.h"

namespace tacho::report {
namespace {

using format::FieldKind;

// The field of one event that is meant; null when it has none.
const PayloadField* find_field(const PayloadSchema& schema, std::string_view name) {
  const auto& fields = schema.fields;
  if (!name.empty()) {
    const auto field = std::ranges::find(fields, name, &PayloadField::name);
    return field != fields.end() ? &*field : nullptr;
  }
  return value_field(schema);
}

std::string list_fields(const PayloadSchema& schema) {
  std::string list;
  for (const PayloadField& field : schema.fields)
    list += ' ' + field.name + (field.unit.empty() ? "" : " (" + field.unit + ")");
  return list.empty() ? " no fields" : list;
}

// Why no single field is meant, with what there is to choose from.
Error explain(const std::vector<std::string>& names, EventSchemas& schemas, const std::string& event,
              const std::string& field, bool are_several) {
  if (!event.empty() && std::ranges::find(names, event) == names.end())
    return use_error("--event: there is no event '" + event + "'" + cli::suggestion(event, names));
  std::string choices;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PayloadSchema* schema = schemas.of(i);
    if (schema != nullptr && (event.empty() || names[i] == event))
      choices.append(choices.empty() ? " " : "; ").append(names[i]).append(":").append(list_fields(*schema));
  }
  if (are_several) return use_error("several events have such a field; choose with --event NAME:" + choices);
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

}  // namespace

bool is_counted_by_value(const PayloadField& field) {
  return field.kind == FieldKind::Text || field.kind == FieldKind::Bool ||
         (field.kind == FieldKind::Enum && !field.enumerators.empty());
}

Result<ChosenField> choose_field(const std::vector<std::string>& names, EventSchemas& schemas,
                                 const std::string& event, const std::string& field) {
  std::vector<ChosenField> fitting;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!event.empty() && names[i] != event) continue;
    const PayloadSchema* const schema = schemas.of(i);
    const PayloadField* const found = schema == nullptr ? nullptr : find_field(*schema, field);
    if (found != nullptr) fitting.push_back({i, schema, found});
  }
  if (fitting.size() != 1) return explain(names, schemas, event, field, !fitting.empty());
  return fitting[0];
}

}  // namespace tacho::report
