// Each key of perf report's table (perf 6.1, ui/browsers/hists.c): what it does here is perf's, or what
// stands for it here. docs/terminal.md lists them for people.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/report/views/tui/shown_report.h"

namespace tacho::report {
namespace {

// A key and what the screen shows after it, and not before it, or the other way round. `first`: keys before
// it.
struct KeyOfPerf {
  Key key;
  std::string_view does;  // in perf
  std::vector<Key> first{};
  std::string_view shows{}, hides{};
  std::string_view selects{};  // what the line at the cursor has then
  ReportView::Flow flow = ReportView::Flow::Stay;
};

constexpr Key key(char letter) { return static_cast<Key>(letter); }

const KeyOfPerf kKeys[] = {
    {Key::Down, "the next line", {}, {}, {}, "one      [kernel.kallsyms]  [k] f0"},
    {Key::Up, "the line before", {Key::Down}, {}, {}, "[k] f2"},
    {Key::PageDown, "a page on", {}, {}, {}, "10.00%    10.00%  two"},
    {key(' '), "a page on", {}, {}, {}, "10.00%    10.00%  two"},
    {Key::PageUp, "a page back", {Key::PageDown}, {}, {}, "[k] f2"},
    {Key::End, "the last line", {}, {}, {}, "10.00%    10.00%  two"},
    {Key::Home, "the first line", {Key::End}, {}, {}, "[k] f2"},
    // perf scrolls at once; here Right and Left open and close until w shows whole names.
    {Key::Right, "scrolls to the right", {key('w')}, {}, "Children"},
    {Key::Left, "scrolls back", {key('w'), Key::Right}, "Children"},
    {key('h'), "help", {}, "The list of rows and call graphs"},
    {key('?'), "help", {}, "The list of rows and call graphs"},
    {Key::F1, "help", {}, "The list of rows and call graphs"},
    {key('q'), "leaves", {}, {}, {}, {}, ReportView::Flow::Quit},
    {Key::Escape, "undoes the last zoom", {key('t')}, {}, ", Thread: one"},
    {Key::Escape, "asks at the top", {}, "Do you really want to exit?"},
    // perf's Enter is m's menu; here it opens the call graph.
    {Key::Enter, "opens", {}, "     f1"},
    {key('m'), "the menu", {}, "Zoom into one thread"},
    {Key::Right, "in a menu: as Enter", {key('m')}, {}, "Callers and callees of f2"},
    {Key::Enter, "in a menu: takes an item", {key('m'), Key::Down, Key::Down}, ", Thread: one", "What to do"},
    {Key::Tab, "the next event", {}, "of event 'page-faults'"},
    {Key::BackTab, "the event before", {Key::Tab}, "of event 'cpu-clock'"},
    {key('+'), "opens a level", {}, "     f1"},
    {key('e'), "opens an entry", {}, "     f0"},
    {key('c'), "closes an entry", {key('e')}, {}, "     f0"},
    {key('E'), "opens all", {}, "     f0"},
    {key('C'), "closes all", {key('E')}, {}, "     f0"},
    {key('a'), "annotates; without samples it says", {}, "Probably appeared just in a callchain"},
    {key('d'), "zooms into the module", {}, ", DSO: [kernel.kallsyms]"},
    {key('d'), "again: out", {key('d')}, {}, ", DSO: [kernel.kallsyms]"},
    {key('t'), "zooms into the thread", {}, ", Thread: one"},
    {key('t'), "again: out", {key('t')}, {}, ", Thread: one"},
    {key('k'), "zooms into the kernel", {}, ", DSO: [kernel]"},
    {key('k'), "again: out", {key('k')}, {}, ", DSO: [kernel]"},
    // As in perf, rows must have the sort key socket; with it see report_view_test.cc.
    {key('S'), "zooms into a socket", {}, "S: rows have no socket; sort by it"},
    {key('/'), "asks for a part of symbols", {}, "Symbol to show:"},
    {Key::Enter, "filters", {key('/'), key('f'), key('3')}, "  q: quit", "Symbol to show:"},
    {key('F'), "shares of what is shown", {Key::End, key('t')}, "100.00%"},
    {key('L'), "asks for the least share", {}, "Percent limit (0-100):"},
    {Key::Enter, "leaves out rows", {key('L'), Key::Backspace, key('5'), key('0')}, {}, "40.00%"},
    {key('H'), "names of columns off", {}, {}, "Children"},
    {key('H'), "names of columns on", {key('H')}, "Children"},
    {key('V'), "modules in call chains", {key('e')}, "f1  [kernel.kallsyms]"},
    {key('i'), "the header", {}, "Header information"},
    {key('P'), "writes perf.hist.N", {}, {}, {}, {}, ReportView::Flow::Save},
    // perf runs a script on the samples; here a view of them is chosen.
    {key('r'), "runs a script", {}, "Views of these samples"},
    {Key::Enter, "with the samples of a function", {key('r')}, "1 of 6 "},
    {key('s'), "another file of the folder", {}, "Another capture in this directory"},
    {Key::Enter, "reads it", {key('s')}, {}, {}, {}, ReportView::Flow::ReadAgain},
    {key('D'), "a line about the rows", {}, "row 1 of "},
    {key('0'), "sorts by the n-th event of a group", {}, {}, "no such key here"},
    {key('1'), "there is no such event", {}, "no such event in the group"},
    {key('%'), "an unknown key", {}, "no such key here; h: help"},
};

TEST(PerfKeys, EachDoesWhatItDoesInPerf) {
  for (const KeyOfPerf& one : kKeys) {
    ShownReport shown({}, 2);
    shown.press(Key::Enter);  // of the list of events
    (void)shown.lines();
    for (const Key before : one.first) shown.press(before);
    const auto name = testing::Message() << "key " << static_cast<std::uint32_t>(one.key) << ": " << one.does;
    if (!one.shows.empty()) {
      EXPECT_FALSE(shown.shows(one.shows)) << name;
    }
    if (!one.hides.empty() && one.key != key('0')) {
      EXPECT_TRUE(shown.shows(one.hides)) << name;
    }
    EXPECT_EQ(shown.press(one.key), one.flow) << name;
    if (!one.shows.empty()) {
      EXPECT_TRUE(shown.shows(one.shows)) << name;
    }
    if (!one.hides.empty()) {
      EXPECT_FALSE(shown.shows(one.hides)) << name;
    }
    if (!one.selects.empty()) {
      EXPECT_NE(shown.selected().find(one.selects), std::string::npos) << name << ": " << shown.selected();
    }
  }
}

}  // namespace
}  // namespace tacho::report
