#include "report/views/report/graph_options.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "report/command.h"

namespace tacho::report {
namespace {

struct GraphWord {
  std::string_view word;
  void (*apply)(GraphOptions&);
};

// In the order in which perf matches abbreviations: "f" is flat.
constexpr GraphWord kWords[] = {
    {"graph", [](GraphOptions& o) { o.form = GraphForm::Graph; }},
    {"flat", [](GraphOptions& o) { o.form = GraphForm::Flat; }},
    {"fractal", [](GraphOptions& o) { o.form = GraphForm::Fractal; }},
    {"folded", [](GraphOptions& o) { o.form = GraphForm::Folded; }},
    {"caller", [](GraphOptions& o) { o.order = ChainOrder::Caller, o.is_order_given = true; }},
    {"callee", [](GraphOptions& o) { o.order = ChainOrder::Callee, o.is_order_given = true; }},
    {"function", [](GraphOptions& o) { o.key = ChainKey::Function; }},
    {"address", [](GraphOptions& o) { o.key = ChainKey::Address; }},
    {"srcline", [](GraphOptions& o) { o.key = ChainKey::SourceLine; }},
    {"branch", [](GraphOptions& o) { o.adds_branches = true; }},
    {"percent", [](GraphOptions& o) { o.value = GraphValue::Percent; }},
    {"period", [](GraphOptions& o) { o.value = GraphValue::Period; }},
    {"count", [](GraphOptions& o) { o.value = GraphValue::Count; }},
};

}  // namespace

Result<> parse_graph_options(std::string_view text, GraphOptions& options) {
  bool has_percent = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word.empty()) continue;
    if (std::string_view("none").starts_with(word)) {
      options.form = GraphForm::None;
      return Done{};
    }
    const auto known =
        std::ranges::find_if(kWords, [&](const GraphWord& row) { return row.word.starts_with(word); });
    if (known != std::end(kWords)) {
      known->apply(options);
      continue;
    }
    char* rest = nullptr;
    if (!has_percent) {
      options.min_percent = std::strtod(word.c_str(), &rest);
      has_percent = true;
    } else {
      options.print_limit = static_cast<std::uint32_t>(std::strtoul(word.c_str(), &rest, 0));
    }
    if (rest == word.c_str()) {
      return use_error("--call-graph: '" + word +
                       "' is neither a number nor one of graph, flat, fractal, folded, none, caller, callee, "
                       "function, address, srcline, branch, percent, period, count");
    }
  }
  if (options.form == GraphForm::None)
    return use_error("--call-graph: none was said before; name a form again: graph, flat, fractal or folded");
  return Done{};
}

}  // namespace tacho::report
