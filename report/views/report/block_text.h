// Blocks of code by their cycles, as perf report --total-cycles prints them.
#pragma once

#include "report/output/text_output.h"
#include "report/profile/block_cycles.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// The blocks of the functions that the rows' branches went to. `cycles` is settled; `rows`: all of
// `entries`, in the report's order.
void write_blocks(TextOutput& out, const Entries& entries, std::span<const std::uint32_t> rows,
                  BlockCycles& cycles, Resolver& resolver, const TextOptions& options);

}  // namespace tacho::report
