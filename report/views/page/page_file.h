// The HTML file of a page.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/base/worker_pool.h"
#include "report/output/packed_data.h"
#include "report/output/text_output.h"
#include "report/views/page/page_tree.h"

namespace tacho::report {

// Writes a page as one HTML file: markup, style, script and data, and a Content-Security-Policy that allows
// nothing else. `head`: the JSON object that the page reads. `columns`: of the samples; the columns of
// texts, frames and nodes are written before them.
Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PackedColumn> columns,
                    format::WorkerPool& pool);

}  // namespace tacho::report
