// The output of a view that writes a text and further files. All go through one stream, since a sandboxed
// child has one: each part but the last is 8 bytes with its size and these bytes; the last one is the rest.
#pragma once

#include <string_view>
#include <vector>

#include "report/output/output_file.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Writes the parts of such a stream to these files. The text, which is the first part, is finished last: a
// pager is waited for.
OutputFile output_of_parts(std::vector<OutputFile> files);

// A part that is not the last one.
void write_part(TextOutput& out, std::string_view bytes);

}  // namespace tacho::report
