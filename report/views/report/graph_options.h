// -g of report: how the call graph below a row is drawn.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/base/result.h"
#include "report/profile/entries.h"

namespace tacho::report {

// The meaning of -g: how the call graph below a row is drawn.
enum class GraphForm : std::uint8_t {
  None,
  Graph,    // a tree; shares are of the event's total
  Fractal,  // a tree; shares are of the node above
  Flat,     // each chain, one frame a line
  Folded,   // each chain on a line
};
enum class GraphValue : std::uint8_t { Percent, Period, Count };

struct GraphOptions {
  GraphForm form = GraphForm::Graph;
  double min_percent = 0.5;
  std::uint32_t print_limit = 0;  // entries of a level; 0: all
  ChainOrder order = ChainOrder::Callee;
  bool is_order_given = false;  // else: Caller with --children
  ChainKey key = ChainKey::Function;
  GraphValue value = GraphValue::Percent;
  bool adds_branches = false;  // the word "branch"
};

// Parses "graph,0.5,caller,function,percent": words in any order, each abbreviated as perf allows. The first
// number is the threshold, the second the print limit. Changes only the options that the text names.
Result<> parse_graph_options(std::string_view text, GraphOptions& options);

}  // namespace tacho::report
