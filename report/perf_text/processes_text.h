// Who the processes were that ran when a recording began, as lines of a capture's header.
#pragma once

#include <string_view>

#include "report/output/printable.h"
#include "report/output/text_output.h"

namespace tacho::report {

// `table`: the text of attachment "processes" (docs/capture-format.md), which may be anything: lines that are
// no processes are passed over. Processes that have other numbers inside of their namespaces get a line each,
// of very many the first; the rest are counted.
void write_processes(TextBuffer& out, std::string_view table, Names names);

}  // namespace tacho::report
