// The output of a view that writes two files: a text, and behind it a second file. Both go through one
// stream, since a sandboxed child has one: 8 bytes with the text's size, the text, and the bytes of the
// second file.
#pragma once

#include <string_view>

#include "report/output/output_file.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Writes the parts of such a stream to two files. The second one is complete before the text: a pager is
// waited for.
OutputFile paired_output(OutputFile text, OutputFile second);

// Begins such a stream. The second file follows.
void begin_pair(TextOutput& out, std::string_view text);

}  // namespace tacho::report
