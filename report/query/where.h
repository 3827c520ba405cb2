// --where: a condition on samples, written as an expression (cli/expression.h).
#pragma once

#include <memory>
#include <string_view>

#include "format/base/result.h"
#include "report/samples/sample_condition.h"

namespace tacho::report {

// Refused when the text does not parse. Its names are checked later, against the events of the capture.
Result<std::unique_ptr<SampleCondition>> parse_where(std::string_view option, std::string_view text);

}  // namespace tacho::report
