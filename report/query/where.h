// --where: an expression as the condition that samples of all events are asked for.
#pragma once

#include <memory>
#include <string_view>

#include "format/base/result.h"
#include "report/samples/sample_condition.h"

namespace tacho::report {

// An error of the use: what is wrong with the text. What is wrong with its names turns out when it is bound
// to a capture's events.
Result<std::unique_ptr<SampleCondition>> parse_where(std::string_view option, std::string_view text);

}  // namespace tacho::report
