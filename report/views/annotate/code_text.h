// Annotated code as people read it: jumps within the function are drawn as arrows, source lines stand before
// the instructions that they were compiled to.
#pragma once

#include "report/output/text_output.h"
#include "report/views/annotate/shown_code.h"

namespace tacho::report {

void write_code_text(TextOutput& out, const ShownCode& shown, SourceFiles& files, const CodeOptions& options);

}  // namespace tacho::report
