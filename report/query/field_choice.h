// Chooses the event and the field that hist and heatmap show: by the options, or else by the roles that the
// payload's description gives its fields.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"

namespace tacho::report {

// The default field of a payload: the one tagged role:value, else the only number with a unit; null when
// there is none. In samples that hold counts (CountedFields in query/expressions.h) a unit does not make a
// value.
const PayloadField* value_field(const PayloadSchema& schema);

struct ChosenField {
  std::size_t event = 0;  // index
  const PayloadSchema* schema = nullptr;
  const PayloadField* field = nullptr;
};

// `names` are those of all events. An empty `event` means any event with the field, an empty `field` the
// default one: value_field(), else the only field that the event has. The error lists the choices and a
// command line for one of them, which starts with `command`.
Result<ChosenField> choose_field(const std::vector<std::string>& names, EventSchemas& schemas,
                                 const std::string& event, const std::string& field,
                                 std::string_view command);

// Whether a distribution counts each value by itself: texts and enums. Other numbers go into ranges.
bool is_counted_by_value(const PayloadField& field);

}  // namespace tacho::report
