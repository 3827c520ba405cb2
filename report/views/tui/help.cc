#include "report/views/tui/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

namespace tacho::report {
namespace {

struct KeyRow {
  std::string_view keys, what;
};

// The help page of the list, in perf's order.
constexpr KeyRow kListKeys[] = {
    {"h ? F1", "this page"},
    {"Up Down PgUp PgDn", "move; also Space (page down), Home, End"},
    {"q Ctrl-C", "leave"},
    {"Esc", "undo the last zoom; without one, ask whether to leave"},
    {"Tab Shift-Tab", "next, previous event"},
    {"Enter", "open or close the call graph here by one level"},
    {"Right Left", "open it; close it or go to its parent"},
    {"+ -", "open or close one level; close"},
    {"e c", "open or close all of this row's call graph; close"},
    {"E C", "the same of all rows"},
    {"m", "menu of what can be done with this row"},
    {"a", "annotate the function here"},
    {"x", "callers and callees of the function here"},
    {"g f", "flame graph in characters: arrows, Enter zooms, Esc: back"},
    {"d t k", "zoom into its module, its thread, the kernel; again: out"},
    {"/", "show functions whose names have this in them"},
    {"T", "samples over time: Space marks, Enter counts that time"},
    {"v", "samples of this row one by one; Enter: fields, call chain"},
    {"l", "samples of all rows that are shown, likewise"},
    {"M", "heat map: times by values of a field, of all these rows"},
    {"b", "histogram of a field, of all these rows"},
    {"B", "compare with a capture from before; again: end"},
    {"o", "sort by other keys"},
    {"< >", "sort by the column to the left, to the right"},
    {"W", "count periods or samples"},
    {"F", "100 % are all samples, or the samples shown here"},
    {"L", "the least share of a row"},
    {"H", "names of columns on and off"},
    {"n w", "whole names: Left and Right scroll then"},
    {"V", "modules in call graphs on and off"},
    {"0-9", "sort by the n-th event of a group"},
    {"i", "the capture's header"},
    {"D", "a line about what is shown"},
    {"Ctrl-L Ctrl-Z", "draw anew; stop, and go on with fg"},
    {"mouse", "click: go there; on a sign or twice: open; wheel: move"},
    {"P r s S", "of perf, not here: each says where its work is done"},
};
constexpr KeyRow kComparedKeys[] = {
    {"< >", "sort by the column to the left, to the right"},
    {"I", "shares of functions by themselves, or with what they call"},
    {"B Esc", "back to the rows of one capture"},
};
constexpr KeyRow kHeatKeys[] = {
    {"arrows", "move to another box; PgUp PgDn: by ten columns; Home, End"},
    {"Space", "mark a corner: the box goes from there to the cursor"},
    {"Enter", "the list counts this box; Esc there: all again"},
    {"v", "its samples one by one"},
    {"x", "what is more frequent in it than outside"},
    {"q Esc", "back"},
};
constexpr KeyRow kSamplesKeys[] = {
    {"Enter", "the sample's fields and its call chain"},
    {"/ n", "search in the lines, again"},
    {"Left Right", "scroll by ten columns"},
    {"q Esc", "back"},
};
constexpr KeyRow kHistKeys[] = {
    {"l", "width of rows, as 1000 or 100us; empty: powers of two"},
    {"k", "a histogram for each comm, cpu or value of a field"},
    {"q Esc", "back"},
};
// Those of tacho top. The first three stand in for keys of the list.
constexpr KeyRow kLiveKeys[] = {
    {"f", "freeze: the rows stay as they are; again: go on"},
    {"z", "zero the counts at each refresh, or count the whole window"},
    {"w", "write what is counted as a capture"},
    {"g n", "the flame graph; whole names"},
};
constexpr KeyRow kCodeKeys[] = {
    {"Tab Shift-Tab", "next and previous of the hottest lines"},
    {"H", "the hottest line"},
    {"Enter Right", "follow the jump or call; at a return: to the caller"},
    {"< >", "the function with more, with less samples"},
    {"/ ? n", "search down, up, again"},
    {"s", "source lines on and off"},
    {"o f", "addresses on and off; of the file, not of the function"},
    {"j J", "arrows of jumps; how many jumps lead to a line"},
    {"k l", "numbers of source lines; file and line at the cursor"},
    {"t", "percent, period, samples"},
    {"p b", "percent of the function or of all; of periods or samples"},
    {"w", "whole paths of source files"},
    {"q Esc Left", "back"},
    {"O c P r", "of perf, not here: each says where its work is done"},
};

std::vector<std::string> key_lines(std::span<const KeyRow> rows) {
  std::vector<std::string> lines;
  for (const KeyRow& row : rows) lines.push_back(fmt::format("  {:<19}{}", row.keys, row.what));
  return lines;
}

}  // namespace

std::vector<std::string> help_lines(KeysOf here, bool is_live) {
  struct Section {
    std::string_view title;
    std::span<const KeyRow> keys;
    bool is_here = false;
  };
  std::vector<Section> sections;
  if (is_live) sections.push_back({"While it is recorded", kLiveKeys});
  sections.push_back({"The list of rows and call graphs", kListKeys});
  sections.push_back({"Annotated code", kCodeKeys, here == KeysOf::Code});
  if (!is_live) {
    sections.push_back({"Two captures compared", kComparedKeys});
    sections.push_back({"Samples one by one", kSamplesKeys, here == KeysOf::Samples});
    sections.push_back({"Heat map", kHeatKeys, here == KeysOf::HeatMap});
    sections.push_back({"Histogram", kHistKeys, here == KeysOf::Histogram});
  }
  std::stable_partition(sections.begin(), sections.end(), [](const Section& one) { return one.is_here; });
  std::vector<std::string> lines;
  for (const Section& section : sections) {
    if (!lines.empty()) lines.emplace_back();
    lines.insert(lines.end(), {std::string(section.title), ""});
    std::ranges::copy(key_lines(section.keys), std::back_inserter(lines));
  }
  return lines;
}

}  // namespace tacho::report
