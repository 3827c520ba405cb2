// tacho flamegraph: a capture's stacks as a picture.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_flamegraph(const std::vector<std::string>& arguments);

}  // namespace tacho::report
