#include "report/views/tui/report_view.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "report/views/tui/flame_view.h"
#include "tests/report/views/tui/shown_report.h"

namespace tacho::report {
namespace {

TEST(ReportView, ShowsRowsAsTheReportDoes) {
  ShownReport shown;
  const auto lines = shown.lines();
  EXPECT_EQ(lines[0], "Samples: 10  of event 'cpu-clock', Event count (approx.): 100");
  EXPECT_EQ(lines[1], "  Children      Self  Command  Shared Object      Symbol");
  EXPECT_EQ(lines[2], "+   60.00%    60.00%  one      [kernel.kallsyms]  [k] f2");
  EXPECT_EQ(lines[3], "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f0");
  EXPECT_EQ(lines[4], "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f1");
  EXPECT_EQ(lines[5], "+   40.00%     0.00%  two      [kernel.kallsyms]  [k] f0");
}

TEST(ReportView, WhatWasChosenIsFoundAgainInAnotherReading) {
  ShownReport shown;
  shown.press(Key::End);
  shown.type("tF/f");
  shown.press(Key::Enter);
  shown.type("e");
  const auto before = shown.lines();
  const ReportView::Memory memory = shown.view->remember();
  ShownReport again;
  again.view->restore(memory);
  EXPECT_EQ(again.lines(), before);
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows("Symbol: f"));
  EXPECT_TRUE(again.shows(", Thread: two"));
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows(", Thread: two"));
}

TEST(ReportView, OfARecordingItSaysWhatIsCounted) {
  ShownReport shown;
  ReportView live(*shown.table, shown.options, *shown.hits, ReportView::Source::Live);
  live.note("last 20 s");
  EXPECT_EQ(text_of(live.draw({120, 24}).rows[0]),
            "Samples: 10  of event 'cpu-clock', Event count (approx.): 100, last 20 s");
  EXPECT_EQ(text_of(live.draw({60, 24}).rows[0]), "Samples: 10  of event 'cpu-clock', last 20 s");
  EXPECT_TRUE(live.is_at_list());
  (void)live.on_key({.key = static_cast<Key>('?'), .size = {}});
  EXPECT_FALSE(live.is_at_list());
  EXPECT_EQ(text_of(live.draw({120, 24}).rows[1]), "While it is recorded");
}

TEST(ReportView, ZoomsFilterAndAreUndone) {
  ShownReport shown;
  shown.press(Key::End);
  shown.type("t");
  EXPECT_TRUE(shown.shows(", Thread: two"));
  EXPECT_FALSE(shown.shows("f2"));
  EXPECT_TRUE(shown.shows("40.00%"));
  shown.type("F");
  EXPECT_TRUE(shown.shows("100.00%")) << "shares of what the zoom leaves";
  EXPECT_TRUE(shown.shows("Samples: 4  of event"));
  shown.press(Key::Escape);
  EXPECT_TRUE(shown.shows("f2"));
  shown.type("/f3");
  EXPECT_TRUE(shown.shows("Symbol to show: f3"));
  EXPECT_FALSE(shown.shows("f1"));
  shown.press(Key::Escape);
  EXPECT_TRUE(shown.shows("f1"));
}

TEST(ReportView, AZoomIntoAModuleKeepsFunctionsThatOnlyCall) {
  ShownReport shown;
  shown.type("/f0");
  shown.press(Key::Enter);
  shown.type("d");
  EXPECT_TRUE(shown.shows(", DSO: [kernel.kallsyms]"));
  EXPECT_TRUE(shown.shows("60.00%     0.00%  one      [kernel.kallsyms]  [k] f0"));
  shown.type("F");
  EXPECT_TRUE(shown.shows("60.00%     0.00%  one      [kernel.kallsyms]  [k] f0"));
}

TEST(ReportView, ASocketIsZoomedIntoWhereRowsHaveIt) {
  ShownReport shown("socket,symbol");
  EXPECT_TRUE(shown.shows("Socket  Symbol"));
  shown.type("S");
  EXPECT_TRUE(shown.shows(", Processor Socket: "));
  EXPECT_TRUE(shown.shows("[k] f2"));
  shown.type("S");
  EXPECT_FALSE(shown.shows("Processor Socket"));
}

TEST(ReportView, AProcessIsZoomedIntoWhereRowsHaveIt) {
  ShownReport shown("pid,symbol");
  shown.type("p");
  EXPECT_TRUE(shown.shows(", Process: 1"));
  EXPECT_TRUE(shown.shows("[k] f2"));
  shown.type("m");
  EXPECT_TRUE(shown.shows("Zoom out of process 1 ('p')"));
  shown.press(Key::Escape);
  shown.type("p");
  EXPECT_FALSE(shown.shows("Process: "));
}

// A row is of several threads, modules or functions unless the sort keys say otherwise.
TEST(ReportView, RowsAreNotZoomedByWhatTheyDoNotHave) {
  {
    ShownReport shown("dso,symbol");
    shown.type("t");
    EXPECT_TRUE(shown.shows("t: rows have no thread"));
    shown.type("p");
    EXPECT_TRUE(shown.shows("p: rows have no process"));
    shown.type("m");
    EXPECT_FALSE(shown.shows(" thread"));
  }
  ShownReport shown("comm");
  shown.type("d");
  EXPECT_TRUE(shown.shows("d: rows have no module"));
  for (const char* const key : {"a", "x"}) {
    shown.type(key);
    EXPECT_TRUE(shown.shows("no function is at the cursor")) << key;
  }
  shown.type("t");
  EXPECT_TRUE(shown.shows(", Thread: one"));
}

TEST(ReportView, HelpBeginsWithTheViewAtHand) {
  ShownReport shown;
  shown.type("x?");
  EXPECT_TRUE(shown.shows("Callers and callees"));
  shown.type("qq");
  shown.type("f?");
  EXPECT_TRUE(shown.shows("Flame graph"));
  shown.type("?q");
  shown.type("i?");
  EXPECT_TRUE(shown.shows("Header information")) << "h and ? close the help only";
}

TEST(ReportView, RowsAreKeptAsTheyAreShown) {
  ShownReport shown;
  shown.type("e");
  EXPECT_EQ(shown.type("P"), ReportView::Flow::Save);
  const ReportView::SavedText& kept = shown.view->saved();
  EXPECT_EQ(kept.as, SavedAs::Rows);
  EXPECT_EQ(kept.text.substr(0, kept.text.find("+   40")),
            "Samples: 10  of event 'cpu-clock', Event count (approx.): 100\n"
            "  Children      Self  Command  Shared Object      Symbol\n"
            "-   60.00%    60.00%  one      [kernel.kallsyms]  [k] f2\n"
            "     f0\n     f1\n     f2\n"
            "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f0\n"
            "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f1\n");
}

TEST(ReportView, AnotherCaptureIsChosenFromTheFolder) {
  ShownReport shown;
  shown.type("s");
  EXPECT_TRUE(shown.shows("after.data"));
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::ReadAgain);
  EXPECT_EQ(shown.again.changed_to, "after.data");
  shown.type("s");
  shown.press(Key::Down);
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::Stay);
  EXPECT_TRUE(shown.shows("nowhere: No such file"));
}

TEST(ReportView, QGoesBackWhereSomethingStandsInPlaceOfTheList) {
  ShownReport shown;
  for (const std::string_view keys : {"x", "g", "v", "?", "i", "m", "r", "s", "M", "b"}) {
    shown.type(keys);
    EXPECT_EQ(shown.type("q"), ReportView::Flow::Stay) << keys;
    EXPECT_TRUE(shown.view->is_at_list()) << keys;
  }
  TimeCounts times;
  times.add_time(1'000'000);
  shown.view->times(&times);
  shown.type("T");
  EXPECT_EQ(shown.type("q"), ReportView::Flow::Stay);
  EXPECT_EQ(shown.type("q"), ReportView::Flow::Quit);
}

// The last line, and the first, of each view.
TEST(ReportView, HintsFitEightyColumns) {
  ShownReport shown;
  TimeCounts times;
  times.add_time(1'000'000);
  shown.view->times(&times);
  const std::pair<std::string_view, std::string_view> views[] = {{"", ""},     {"x", "q"}, {"T", "q"},
                                                                 {"v", "q"},   {"g", "q"}, {"M\n", "q"},
                                                                 {"b\n", "q"}, {"?", "q"}, {"i", "q"}};
  for (const auto& [keys, back] : views) {
    shown.type(keys);
    // An end of a line that is cut is no end of a hint.
    const auto narrow = shown.lines({80, 24}), wide = shown.lines({200, 24});
    if (keys != "g") {
      EXPECT_EQ(narrow.back(), wide.back()) << keys;
    }
    EXPECT_TRUE(narrow.back().find("q: ") != std::string::npos) << keys << ": " << narrow.back();
    shown.type(back);
  }
}

TEST(ReportView, CallersAndCalleesAreOfAllChains) {
  ShownReport shown;
  shown.type("/f1");
  shown.press(Key::Enter);
  shown.type("x");
  const auto lines = shown.lines();
  EXPECT_EQ(lines[0], "f1: 70.00% of all with callees");
  EXPECT_EQ(lines[2], "-   70.00%  callers of f1");
  EXPECT_EQ(lines[3], "     f1");
  EXPECT_EQ(lines[4], "     f0");
  EXPECT_EQ(lines[5], "-   70.00%  callees of f1");
  EXPECT_EQ(lines[6], "   - f1");
  EXPECT_EQ(lines[7], "        f2") << "all that f1 calls: no share, as in perf";
}

TEST(ReportView, OtherKeysAndOrdersNeedNoReading) {
  ShownReport shown;
  shown.type("o");
  shown.press(static_cast<Key>(21));
  shown.type("sym");
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::Stay);
  EXPECT_EQ(shown.lines()[2], "+  100.00%     0.00%  [k] f0");
  shown.type(">");
  EXPECT_EQ(shown.lines()[2], "+   60.00%    60.00%  [k] f2");
  shown.type("W");
  EXPECT_TRUE(shown.shows("Event count (approx.): 10, by samples"));
  shown.type("o");
  shown.press(static_cast<Key>(21));
  shown.type("cpu");
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::ReadAgain);
  EXPECT_EQ(shown.view->wanted_sort(), "cpu");
}

TEST(ReportView, NamesOfThreadsAreThereForLaterKeys) {
  ShownReport shown("sym");
  shown.type("o");
  shown.press(static_cast<Key>(21));
  shown.type("comm");
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::Stay);
  EXPECT_EQ(shown.lines()[2], "+   60.00%    60.00%  one");
  EXPECT_EQ(shown.lines()[3], "+   40.00%    40.00%  two");
}

TEST(ReportView, EscAsksBeforeItLeaves) {
  ShownReport shown;
  EXPECT_EQ(shown.press(Key::Escape), ReportView::Flow::Stay);
  EXPECT_TRUE(shown.shows("Do you really want to exit?"));
  EXPECT_EQ(shown.press(Key::Escape), ReportView::Flow::Stay);
  shown.press(Key::Escape);
  EXPECT_EQ(shown.type("y"), ReportView::Flow::Quit);
}

TEST(ReportView, AFlameGraphHasBoxesAsWideAsTheirShares) {
  ShownReport shown;
  shown.type("f");
  auto lines = shown.lines({60, 10});
  EXPECT_EQ(lines[1], "│all");
  EXPECT_EQ(lines[2], "│f0");
  EXPECT_EQ(lines[3], "│f1" + std::string(39, ' ') + "│f3") << "70 and 30 of 100";
  EXPECT_EQ(lines[4], "│f2");
  EXPECT_EQ(lines[9].substr(0, 31), "all: 100.00% of all, 0.00% self");
  shown.press(Key::Down);
  shown.press(Key::Down);
  shown.press(Key::Right);
  shown.press(Key::Enter);
  lines = shown.lines({60, 10});
  EXPECT_EQ(lines[3], "│f3");
  EXPECT_EQ(lines[9].find("f3: 30.00% of all, 30.00% self"), 0u);
  shown.press(Key::Escape);
  EXPECT_EQ(shown.lines({60, 10})[3].find("│f1"), 0u) << "out to its caller, f0";
}

TEST(FlameView, CalleesWithoutABoxAreNoSelfWeight) {
  // dispatch runs 3 of 1000 itself; of its callees only f1 is above the graph's limit.
  FlameView view("", {{.first_child = 1, .children = 1, .weight = 1000},
                      {.frames = {"main", "dispatch"},
                       .functions = {FunctionId{0}, FunctionId{1}},
                       .first_child = 2,
                       .children = 1,
                       .weight = 989,
                       .own_weight = 3},
                      {.frames = {"f1"}, .functions = {FunctionId{2}}, .weight = 541, .own_weight = 541}});
  const auto last_line = [&view] {
    Frame frame({100, 10});
    view.draw(frame);
    return text_of(frame.rows[9]);
  };
  const auto down = [&view] { (void)view.on_key({.key = Key::Down, .size = {}}); };
  EXPECT_EQ(last_line().substr(0, 68),
            "all: 100.00% of all, 0.00% self, 1.10% in callees too thin to draw  ");
  down();
  EXPECT_EQ(last_line().substr(0, 36), "main: 98.90% of all, 0.00% self  h: ");
  down();
  EXPECT_EQ(last_line().substr(0, 73),
            "dispatch: 98.90% of all, 0.30% self, 44.50% in callees too thin to draw  ");
  down();
  EXPECT_EQ(last_line().substr(0, 36), "f1: 54.10% of all, 54.10% self  h: h");
}

TEST(ReportView, YesIsAskedForOnlyWhereItIsTheQuestion) {
  ShownReport shown;
  shown.type("o");
  shown.press(static_cast<Key>(21));
  shown.type("y");
  EXPECT_TRUE(shown.shows("Sort keys: y"));
}

TEST(ReportView, SamplesOfARowAndOfAllRowsAreListed) {
  ShownReport shown;
  shown.type("l");
  EXPECT_EQ(shown.lines()[0], "Samples of event 'cpu-clock'");
  EXPECT_EQ(shown.lines()[1], "    time comm pid tid cpu event     sym");
  EXPECT_EQ(shown.lines()[2], "0.000000 one    1   1   0 cpu-clock f2");
  EXPECT_TRUE(shown.shows("1 of 10 "));
  shown.press(Key::End);
  EXPECT_EQ(shown.selected(), "0.000000 two    1   2   0 cpu-clock f1");
  shown.press(Key::Enter);
  EXPECT_TRUE(shown.shows("Call chain, callers below:"));
  EXPECT_TRUE(shown.shows("ffffffff81000108 f1+0x8 ([kernel.kallsyms])"));
  EXPECT_TRUE(shown.shows("ffffffff81000008 f0+0x8 ([kernel.kallsyms])"));
  EXPECT_FALSE(shown.view->is_at_list());
  shown.type("qq");
  EXPECT_TRUE(shown.view->is_at_list());
  // f1 of thread two: below it nothing, in it one sample; f0 of thread two: in or below it all four.
  shown.press(Key::End);
  shown.type("v");
  EXPECT_TRUE(shown.shows("1 of 1 "));
  shown.type("q");
  shown.press(Key::Home);
  for (int i = 0; i < 3; ++i) shown.press(Key::Down);
  shown.type("v");
  EXPECT_EQ(shown.lines()[0], "Samples of event 'cpu-clock', of two, in or below f0");
  EXPECT_TRUE(shown.shows("1 of 4 "));
  shown.type("q");
  shown.type("/f3");
  shown.press(Key::Enter);
  shown.type("l");
  EXPECT_TRUE(shown.shows("1 of 3 "));
}

TEST(ReportView, ABoxOfAHeatMapIsAskedForAsAFilter) {
  ShownReport shown;
  shown.type("M");
  EXPECT_TRUE(shown.shows("Heat map of"));
  shown.press(Key::Down);
  shown.press(Key::Enter);  // the period: all are 10
  EXPECT_EQ(shown.lines()[0], "period of cpu-clock: 10 samples, columns of 1 us");
  EXPECT_TRUE(shown.shows("period 10: 10 samples"));
  shown.type("v");
  EXPECT_TRUE(shown.shows("1 of 10 "));
  shown.type("qx");
  EXPECT_TRUE(shown.shows("10 samples in the box, 0 outside"));
  shown.type("q");
  EXPECT_EQ(shown.press(Key::Enter), ReportView::Flow::ReadAgain);
  ASSERT_TRUE(shown.view->wanted_box() && *shown.view->wanted_box());
  EXPECT_EQ((*shown.view->wanted_box())->box.low, 10);
  ShownReport boxed;
  boxed.view->box(*shown.view->wanted_box());
  EXPECT_TRUE(boxed.shows(", period 10"));
  EXPECT_EQ(boxed.press(Key::Escape), ReportView::Flow::ReadAgain);
  EXPECT_FALSE(*boxed.view->wanted_box());
}

TEST(ReportView, ACaptureIsComparedWithItself) {
  ShownReport shown;
  shown.type("B");
  EXPECT_TRUE(shown.shows("Earlier capture:"));
  shown.press(static_cast<Key>(21));
  shown.type("nowhere");
  shown.press(Key::Enter);
  EXPECT_TRUE(shown.shows("nowhere: No such file or directory"));
  shown.type("B");
  EXPECT_FALSE(shown.shows(".old")) << "the recorder kept none";
  shown.type("before.data");
  shown.press(Key::Enter);
  EXPECT_EQ(shown.lines()[1], "    Before     After     Delta  Command  Shared Object      Symbol");
  EXPECT_EQ(shown.lines()[2], "+   60.00%    60.00%    +0.00%  one      [kernel.kallsyms]  [k] f2");
  EXPECT_TRUE(shown.shows(", compared with "));
  EXPECT_FALSE(shown.shows("[k] f0")) << "by itself it has nothing";
  shown.type("I");
  EXPECT_TRUE(shown.shows("[k] f0"));
  shown.type("t");
  EXPECT_FALSE(shown.shows("two"));
  const ReportView::Memory memory = shown.view->remember();
  const auto before = shown.lines();
  ShownReport again;
  again.view->restore(memory);
  EXPECT_EQ(again.lines()[3], before[3]);
  again.press(Key::Escape);
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows("Before"));
}

TEST(ReportView, OrderAndSharesThatChangeTogetherAreBothShown) {
  ShownReport shown;
  shown.press(Key::End);
  shown.type("t/f\n");
  const auto before = shown.lines();
  shown.type(">F");
  EXPECT_NE(shown.lines(), before);
  shown.press(Key::Escape);
  EXPECT_FALSE(shown.shows("Symbol: f"));
  EXPECT_TRUE(shown.shows("40.00%     0.00%  two"));
  EXPECT_FALSE(shown.shows("100.00%"));
}

TEST(ReportView, FlameGraphsAndCallersAreOfTheZoom) {
  ShownReport shown("pid,symbol", 1, 2);
  shown.type("f");
  EXPECT_TRUE(shown.shows("│f3"));
  EXPECT_TRUE(shown.shows("│0x1234"));
  shown.type("qk");
  shown.type("f");
  EXPECT_TRUE(shown.shows("│f3"));
  EXPECT_FALSE(shown.shows("│0x1234"));
  shown.type("qkpf");
  EXPECT_TRUE(shown.shows("Process: 1"));
  EXPECT_TRUE(shown.shows("│f2"));
  EXPECT_FALSE(shown.shows("│f3"));
  shown.type("q/f0\n");
  shown.type("x");
  EXPECT_EQ(shown.lines()[0], "f0: 54.55% of all with callees") << "6 of 11";
  EXPECT_FALSE(shown.shows("f3"));
}

TEST(ReportView, APercentLimitHoldsAgainAfterAComparison) {
  ShownReport shown("sym");
  const auto compare = [&shown] {
    shown.type("B");
    shown.press(static_cast<Key>(21));
    shown.type("before.data\n");
  };
  shown.type("L");
  shown.press(static_cast<Key>(21));
  shown.type("50\n");
  EXPECT_FALSE(shown.shows("[k] f3"));
  shown.type("/f");
  shown.press(Key::Enter);
  compare();
  EXPECT_TRUE(shown.shows("[k] f3")) << "the limit is not for a comparison";
  shown.press(Key::Escape);
  EXPECT_TRUE(shown.shows("[k] f3")) << "also when a zoom is undone";
  shown.type("B");
  EXPECT_FALSE(shown.shows("[k] f3"));
  compare();
  ShownReport again("sym");
  again.view->restore(shown.view->remember());
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows("[k] f3"));
}

TEST(ReportView, SamplesOfRowsWithoutAFunctionAreListed) {
  {
    ShownReport shown("comm");
    shown.press(Key::End);
    shown.type("v");
    EXPECT_EQ(shown.lines()[0], "Samples of event 'cpu-clock', of two");
    EXPECT_TRUE(shown.shows("1 of 4 "));
  }
  ShownReport shown("pid,dso", 1, 2);
  EXPECT_TRUE(shown.selected().find("[kernel.kallsyms]") != std::string::npos);
  shown.type("v");
  EXPECT_TRUE(shown.shows("1 of 6 "));
  shown.type("q");
  shown.press(Key::End);
  EXPECT_TRUE(shown.selected().find("[unknown]") != std::string::npos);
  shown.type("v");
  EXPECT_TRUE(shown.shows("1 of 1 "));
}

TEST(ReportView, AnyKeysInAnyOrderAreSafe) {
  ShownReport shown;
  std::mt19937 random(7);
  constexpr Key kSpecial[] = {Key::Up,     Key::Down,  Key::Left,     Key::Right,   Key::Enter,
                              Key::Escape, Key::Tab,   Key::Home,     Key::BackTab, Key::PageUp,
                              Key::End,    Key::Click, Key::Backspace};
  for (int i = 0; i < 20000; ++i) {
    const bool is_special = random() % 2 == 0;
    KeyPress press{
        .key = is_special ? kSpecial[random() % std::size(kSpecial)] : static_cast<Key>(33 + random() % 94),
        .size = {}};
    press.row = static_cast<std::uint16_t>(random() % 30);
    press.column = static_cast<std::uint16_t>(random() % 100);
    (void)shown.view->on_key(press);
    const ScreenSize size{static_cast<std::uint16_t>(1 + random() % 150),
                          static_cast<std::uint16_t>(1 + random() % 40)};
    const Frame frame = shown.view->draw(size);
    for (const FrameRow& row : frame.rows)
      for (const StyledText& run : row.runs) ASSERT_LE(run.column + columns_of(run.text), size.width);
  }
}

}  // namespace
}  // namespace tacho::report
