// Annotated code in the layout of `perf annotate --stdio` (perf 6.1): its columns, counters and blanks; the
// texts of instructions are capstone's.
#pragma once

#include "report/output/text_output.h"
#include "report/views/annotate/shown_code.h"

namespace tacho::report {

void write_perf_layout(TextOutput& out, const ShownCode& shown, SourceFiles& files,
                       const CodeOptions& options);

}  // namespace tacho::report
