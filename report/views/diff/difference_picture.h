// The flame graph of a comparison of two sides of captures.
#pragma once

#include <span>
#include <string>

#include "format/base/result.h"
#include "format/base/worker_pool.h"
#include "report/compare/comparison.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Writes an SVG file: a graph for each event, and one for what is gone. Widths are those after, colours the
// change of what was compared, shares or costs. `matched`: see Comparison::match_sides().
Result<> write_difference_svg(TextOutput& out, const Comparison& comparison,
                              std::span<const ComparedEvent> events, const std::string& matched,
                              format::WorkerPool& pool);

}  // namespace tacho::report
