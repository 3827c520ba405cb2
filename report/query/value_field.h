// Which field of a payload its values are, by default.
#pragma once

#include "report/decode/payload.h"

namespace tacho::report {

// The field tagged role:value, else the only number with a unit; null: there is none. Of samples that stand
// for many values (query/counted.h) a number with a unit is none of those.
const PayloadField* value_field(const PayloadSchema& schema);

}  // namespace tacho::report
