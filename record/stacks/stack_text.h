// What is said of stacks that were walked in the kernel.
#pragma once

#include <string>

#include "record/stacks/stack_splice.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

// The line for the end of a recording: how many stacks are whole, and why the others are not. Empty without
// samples.
std::string described(const StackCounts& counts);
// Tables and memory, for -v.
std::string described(const TableFacts& facts);

}  // namespace tacho::record
