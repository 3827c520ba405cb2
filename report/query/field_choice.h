// Which field of which event a view of one field shows (hist, heatmap): what the options name, or what the
// payload's roles say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"

namespace tacho::report {

// Which field of a payload its values are, by default.

// The field tagged role:value, else the only number with a unit; null: there is none. Of samples that stand
// for many values (query/counted.h) a number with a unit is none of those.
const PayloadField* value_field(const PayloadSchema& schema);

struct ChosenField {
  std::size_t event = 0;  // index
  const PayloadSchema* schema = nullptr;
  const PayloadField* field = nullptr;
};

// `names`: of all events. Empty `event` or `field`: any event that has the field, and the field tagged
// role:value, else the only number with a unit. The error (of the use) lists what there is to choose from,
// and a command line for one of them: `command` is the part up to the file.
Result<ChosenField> choose_field(const std::vector<std::string>& names, EventSchemas& schemas,
                                 const std::string& event, const std::string& field,
                                 std::string_view command);

// Whether each value is counted for itself: texts, and numbers whose values have names. Others are numbers
// that are near or far from each other.
bool is_counted_by_value(const PayloadField& field);

}  // namespace tacho::report
