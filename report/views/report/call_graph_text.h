// The call graph below a row, byte for byte as perf report --stdio draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/call_tree.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

struct GraphedRow {
  std::uint64_t event_total = 0;               // period of the event: what 100 % are, but for Fractal
  std::optional<std::uint64_t> limit_total{};  // what the least share is one of; not given: event_total
  std::uint64_t row_total = 0;                 // period of the row; with children added up, if it shows those
  bool leaves_out_first = false;     // the row is sorted by symbol: the first frame would be shown twice
  std::string_view separator = ";";  // of frames, with Folded
};

// Which nodes are made for a form.
CallTreeLimit graph_limit(const GraphOptions& options, std::uint64_t event_total);

class CallGraphText {
 public:
  // `has_colour`: shares are coloured. `room`: columns that lines fit into, as far as names can be cut; 0: no
  // limit.
  CallGraphText(const GraphOptions& options, const StableArray<Function>& functions, Names names,
                bool has_colour = false, std::size_t room = 0)
      : options_(options), functions_(&functions), names_(names), has_colour_(has_colour), room_(room) {}

  // The lines of a row's graph, a blank line behind it included; nothing when nothing is heavy enough.
  void write(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;

 private:
  class Drawing;
  std::vector<const CallNode*> ended_nodes(const CallTree& tree, std::uint64_t least) const;
  void write_paths(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;
  void write_value(TextBuffer& out, std::uint64_t period, std::uint64_t samples, std::uint64_t total) const;
  std::string frame_text(std::uint32_t function) const;
  // The end of a line: the frame, and `behind` it how branches went there.
  void end_line(TextBuffer& out, std::uint32_t function, std::string_view behind = {}) const;

  GraphOptions options_;
  const StableArray<Function>* functions_;
  Names names_;
  bool has_colour_;
  std::size_t room_;
};

}  // namespace tacho::report
