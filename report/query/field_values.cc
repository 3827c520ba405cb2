#include "report/query/field_values.h"

#include <utility>

#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"

namespace tacho::report {

FieldName field_name_of(std::string_view text, std::string_view event) {
  const std::size_t dot = text.rfind('.');
  if (!event.empty() || dot == std::string_view::npos) return {std::string(event), std::string(text)};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

Result<std::size_t> FieldValues::add_field(const FieldName& name) {
  const auto chosen =
      choose_field(event_names(session_.events()), schemas_, name.event, name.field, command_);
  if (!chosen) return chosen.error();
  const CountedFields counted = counted_fields(*chosen->schema);
  OneField made{
      .event = chosen->event, .field = chosen->field, .count = counted.count, .how = {}, .values = {}};
  if (has_slots(*made.field)) {
    made.how.slots = made.field;
    made.how.sum = counted.sum;
  }
  made.how.is_total = is_total(*chosen->schema, *made.field);
  fields_.push_back(std::move(made));
  return fields_.size() - 1;
}

void FieldValues::see(const ResolvedSample& sample) {
  for (OneField& one : fields_)
    if (one.event == sample.event_index)
      add_values(one.values, one.how, value_in_sample(*one.field, sample), count_of(one.count, sample),
                 sample);
}

std::string FieldValues::name(std::size_t field) const {
  return session_.events()[fields_[field].event].name + "." + fields_[field].field->name;
}

}  // namespace tacho::report
