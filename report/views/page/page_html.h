// A page as one HTML file: the markup, the style, the script and the data, and a policy that allows no
// others.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/views/page/page_samples.h"

namespace tacho::report {

// `head`: a JSON object, as page/data.js reads it. `columns`: of the samples; those of texts, frames and
// nodes are put before them.
Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PageColumn> columns);

}  // namespace tacho::report
