// What is said of stacks that were walked in the kernel.
#pragma once

#include <string>

#include "format/header_strings.h"
#include "record/stacks/stack_splice.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

// The line for the end of a recording: how many stacks are whole, and why the others are not. Empty without
// samples.
std::string described(const StackCounts& counts);
// Whether that is what everybody expects: 95 % are whole, or there are none.
bool are_mostly_whole(const StackCounts& counts);
// The same for a capture's header.
format::StringPairs facts_of(const StackCounts& counts);
// What was counted since.
StackCounts operator-(StackCounts counts, const StackCounts& before);
// Tables and memory, for -v.
std::string described(const TableFacts& facts);

}  // namespace tacho::record
