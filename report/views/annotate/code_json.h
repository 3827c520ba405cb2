// Annotated code for programs: a JSON object a function, on a line of its own.
#pragma once

#include "report/output/text_output.h"
#include "report/views/annotate/shown_code.h"

namespace tacho::report {

void write_code_json(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

}  // namespace tacho::report
