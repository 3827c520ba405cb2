// The table of commands.
#pragma once

#include <span>

#include "report/command.h"

namespace tacho::report {

std::span<const Command> commands();

}  // namespace tacho::report
