// Writes a page as one HTML file: markup, style, script and data, and a Content-Security-Policy that allows
// nothing else.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/views/page/page_samples.h"

namespace tacho::report {

// `head`: the JSON object that page/data.js reads. `columns`: of the samples; the columns of texts, frames
// and nodes are written before them.
Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PageColumn> columns, format::WorkerPool& pool);

}  // namespace tacho::report
