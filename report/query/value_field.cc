#include "report/query/value_field.h"

#include <algorithm>

namespace tacho::report {

const PayloadField* value_field(const PayloadSchema& schema) {
  const auto& fields = schema.fields;
  const auto value = std::ranges::find(fields, "value", &PayloadField::role);
  if (value != fields.end()) return &*value;
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

}  // namespace tacho::report
