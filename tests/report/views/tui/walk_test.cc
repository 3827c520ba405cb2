#include "report/views/tui/walk.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/report/views/tui/walked.h"

namespace tacho::report {
namespace {

TEST(Walk, ShowsRowsAsTheReportDoes) {
  Walked walked;
  const auto lines = walked.lines();
  EXPECT_EQ(lines[0], "Samples: 10  of event 'cpu-clock', Event count (approx.): 100");
  EXPECT_EQ(lines[1], "  Children      Self  Command  Shared Object      Symbol");
  EXPECT_EQ(lines[2], "+   60.00%    60.00%  one      [kernel.kallsyms]  [k] f2");
  EXPECT_EQ(lines[3], "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f0");
  EXPECT_EQ(lines[4], "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f1");
  EXPECT_EQ(lines[5], "+   40.00%     0.00%  two      [kernel.kallsyms]  [k] f0");
}

TEST(Walk, WhatWasChosenIsFoundAgainInAnotherReading) {
  Walked walked;
  walked.press(Key::End);
  walked.type("tF/f");
  walked.press(Key::Enter);
  walked.type("e");
  const auto before = walked.lines();
  const Walk::Memory memory = walked.walk->remember();
  Walked again;
  again.walk->restore(memory);
  EXPECT_EQ(again.lines(), before);
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows("Symbol: f"));
  EXPECT_TRUE(again.shows(", Thread: two"));
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows(", Thread: two"));
}

TEST(Walk, OfARecordingItSaysWhatIsCounted) {
  Walked walked;
  Walk live(*walked.sink, walked.options, *walked.hits, Walk::Of::Live);
  live.note("last 20 s");
  EXPECT_EQ(text_of(live.draw({120, 24}).rows[0]),
            "Samples: 10  of event 'cpu-clock', Event count (approx.): 100, last 20 s");
  EXPECT_EQ(text_of(live.draw({60, 24}).rows[0]), "Samples: 10  of event 'cpu-clock', last 20 s");
  EXPECT_TRUE(live.is_at_list());
  (void)live.on_key({.key = static_cast<Key>('?'), .size = {}});
  EXPECT_FALSE(live.is_at_list());
  EXPECT_EQ(text_of(live.draw({120, 24}).rows[1]), "While it is recorded");
}

TEST(Walk, ZoomsFilterAndAreUndone) {
  Walked walked;
  walked.press(Key::End);
  walked.type("t");
  EXPECT_TRUE(walked.shows(", Thread: two"));
  EXPECT_FALSE(walked.shows("f2"));
  EXPECT_TRUE(walked.shows("40.00%"));
  walked.type("F");
  EXPECT_TRUE(walked.shows("100.00%")) << "shares of what the zoom leaves";
  EXPECT_TRUE(walked.shows("Samples: 4  of event"));
  walked.press(Key::Escape);
  EXPECT_TRUE(walked.shows("f2"));
  walked.type("/f3");
  EXPECT_TRUE(walked.shows("Symbol to show: f3"));
  EXPECT_FALSE(walked.shows("f1"));
  walked.press(Key::Escape);
  EXPECT_TRUE(walked.shows("f1"));
}

TEST(Walk, AZoomIntoAModuleKeepsFunctionsThatOnlyCall) {
  Walked walked;
  walked.type("/f0");
  walked.press(Key::Enter);
  walked.type("d");
  EXPECT_TRUE(walked.shows(", DSO: [kernel.kallsyms]"));
  EXPECT_TRUE(walked.shows("60.00%     0.00%  one      [kernel.kallsyms]  [k] f0"));
  walked.type("F");
  EXPECT_TRUE(walked.shows("60.00%     0.00%  one      [kernel.kallsyms]  [k] f0"));
}

TEST(Walk, ASocketIsZoomedIntoWhereRowsHaveIt) {
  Walked walked("socket,symbol");
  EXPECT_TRUE(walked.shows("Socket  Symbol"));
  walked.type("S");
  EXPECT_TRUE(walked.shows(", Processor Socket: "));
  EXPECT_TRUE(walked.shows("[k] f2"));
  walked.type("S");
  EXPECT_FALSE(walked.shows("Processor Socket"));
}

TEST(Walk, AProcessIsZoomedIntoWhereRowsHaveIt) {
  Walked walked("pid,symbol");
  walked.type("p");
  EXPECT_TRUE(walked.shows(", Process: 1"));
  EXPECT_TRUE(walked.shows("[k] f2"));
  walked.type("m");
  EXPECT_TRUE(walked.shows("Zoom out of process 1 ('p')"));
  walked.press(Key::Escape);
  walked.type("p");
  EXPECT_FALSE(walked.shows("Process: "));
}

// A row is of several threads, modules or functions unless the sort keys say otherwise.
TEST(Walk, RowsAreNotZoomedByWhatTheyDoNotHave) {
  {
    Walked walked("dso,symbol");
    walked.type("t");
    EXPECT_TRUE(walked.shows("t: rows have no thread"));
    walked.type("p");
    EXPECT_TRUE(walked.shows("p: rows have no process"));
    walked.type("m");
    EXPECT_FALSE(walked.shows(" thread"));
  }
  Walked walked("comm");
  walked.type("d");
  EXPECT_TRUE(walked.shows("d: rows have no module"));
  for (const char* const key : {"a", "x"}) {
    walked.type(key);
    EXPECT_TRUE(walked.shows("no function is at the cursor")) << key;
  }
  walked.type("t");
  EXPECT_TRUE(walked.shows(", Thread: one"));
}

TEST(Walk, HelpBeginsWithTheViewAtHand) {
  Walked walked;
  walked.type("x?");
  EXPECT_TRUE(walked.shows("Callers and callees"));
  walked.type("qq");
  walked.type("f?");
  EXPECT_TRUE(walked.shows("Flame graph"));
  walked.type("?q");
  walked.type("i?");
  EXPECT_TRUE(walked.shows("Header information")) << "h and ? close the help only";
}

TEST(Walk, RowsAreKeptAsTheyAreShown) {
  Walked walked;
  walked.type("e");
  EXPECT_EQ(walked.type("P"), Walk::Flow::Keep);
  const Walk::KeptText& kept = walked.walk->kept();
  EXPECT_EQ(kept.as, KeptAs::Rows);
  EXPECT_EQ(kept.text.substr(0, kept.text.find("+   40")),
            "Samples: 10  of event 'cpu-clock', Event count (approx.): 100\n"
            "  Children      Self  Command  Shared Object      Symbol\n"
            "-   60.00%    60.00%  one      [kernel.kallsyms]  [k] f2\n"
            "     f0\n     f1\n     f2\n"
            "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f0\n"
            "+   60.00%     0.00%  one      [kernel.kallsyms]  [k] f1\n");
}

TEST(Walk, AnotherCaptureIsChosenFromTheFolder) {
  Walked walked;
  walked.type("s");
  EXPECT_TRUE(walked.shows("after.data"));
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::ReadAgain);
  EXPECT_EQ(walked.again.changed_to, "after.data");
  walked.type("s");
  walked.press(Key::Down);
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::Stay);
  EXPECT_TRUE(walked.shows("nowhere: No such file"));
}

TEST(Walk, QGoesBackWhereSomethingStandsInPlaceOfTheList) {
  Walked walked;
  for (const std::string_view keys : {"x", "g", "v", "?", "i", "m", "r", "s", "M", "b"}) {
    walked.type(keys);
    EXPECT_EQ(walked.type("q"), Walk::Flow::Stay) << keys;
    EXPECT_TRUE(walked.walk->is_at_list()) << keys;
  }
  TimeCounts times;
  times.add(1'000'000);
  walked.walk->times(&times);
  walked.type("T");
  EXPECT_EQ(walked.type("q"), Walk::Flow::Stay);
  EXPECT_EQ(walked.type("q"), Walk::Flow::Quit);
}

// The last line, and the first, of each view.
TEST(Walk, HintsFitEightyColumns) {
  Walked walked;
  TimeCounts times;
  times.add(1'000'000);
  walked.walk->times(&times);
  const std::pair<std::string_view, std::string_view> views[] = {{"", ""},     {"x", "q"}, {"T", "q"},
                                                                 {"v", "q"},   {"g", "q"}, {"M\n", "q"},
                                                                 {"b\n", "q"}, {"?", "q"}, {"i", "q"}};
  for (const auto& [keys, back] : views) {
    walked.type(keys);
    // An end of a line that is cut is no end of a hint.
    const auto narrow = walked.lines({80, 24}), wide = walked.lines({200, 24});
    if (keys != "g") {
      EXPECT_EQ(narrow.back(), wide.back()) << keys;
    }
    EXPECT_TRUE(narrow.back().find("q: ") != std::string::npos) << keys << ": " << narrow.back();
    walked.type(back);
  }
}

TEST(Walk, CallersAndCalleesAreOfAllChains) {
  Walked walked;
  walked.type("/f1");
  walked.press(Key::Enter);
  walked.type("x");
  const auto lines = walked.lines();
  EXPECT_EQ(lines[0], "f1: 70.00% of all with callees");
  EXPECT_EQ(lines[2], "-   70.00%  callers of f1");
  EXPECT_EQ(lines[3], "     f1");
  EXPECT_EQ(lines[4], "     f0");
  EXPECT_EQ(lines[5], "-   70.00%  callees of f1");
  EXPECT_EQ(lines[6], "   - f1");
  EXPECT_EQ(lines[7], "        f2") << "all that f1 calls: no share, as in perf";
}

TEST(Walk, OtherKeysAndOrdersNeedNoReading) {
  Walked walked;
  walked.type("o");
  walked.press(static_cast<Key>(21));
  walked.type("sym");
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::Stay);
  EXPECT_EQ(walked.lines()[2], "+  100.00%     0.00%  [k] f0");
  walked.type(">");
  EXPECT_EQ(walked.lines()[2], "+   60.00%    60.00%  [k] f2");
  walked.type("W");
  EXPECT_TRUE(walked.shows("Event count (approx.): 10, by samples"));
  walked.type("o");
  walked.press(static_cast<Key>(21));
  walked.type("cpu");
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::ReadAgain);
  EXPECT_EQ(walked.walk->wanted_sort(), "cpu");
}

TEST(Walk, NamesOfThreadsAreThereForLaterKeys) {
  Walked walked("sym");
  walked.type("o");
  walked.press(static_cast<Key>(21));
  walked.type("comm");
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::Stay);
  EXPECT_EQ(walked.lines()[2], "+   60.00%    60.00%  one");
  EXPECT_EQ(walked.lines()[3], "+   40.00%    40.00%  two");
}

TEST(Walk, EscAsksBeforeItLeaves) {
  Walked walked;
  EXPECT_EQ(walked.press(Key::Escape), Walk::Flow::Stay);
  EXPECT_TRUE(walked.shows("Do you really want to exit?"));
  EXPECT_EQ(walked.press(Key::Escape), Walk::Flow::Stay);
  walked.press(Key::Escape);
  EXPECT_EQ(walked.type("y"), Walk::Flow::Quit);
}

TEST(Walk, AFlameGraphHasBoxesAsWideAsTheirShares) {
  Walked walked;
  walked.type("f");
  auto lines = walked.lines({60, 10});
  EXPECT_EQ(lines[1], "│all");
  EXPECT_EQ(lines[2], "│f0");
  EXPECT_EQ(lines[3], "│f1" + std::string(39, ' ') + "│f3") << "70 and 30 of 100";
  EXPECT_EQ(lines[4], "│f2");
  EXPECT_EQ(lines[9].substr(0, 31), "all: 100.00% of all, 0.00% self");
  walked.press(Key::Down);
  walked.press(Key::Down);
  walked.press(Key::Right);
  walked.press(Key::Enter);
  lines = walked.lines({60, 10});
  EXPECT_EQ(lines[3], "│f3");
  EXPECT_EQ(lines[9].find("f3: 30.00% of all, 30.00% self"), 0u);
  walked.press(Key::Escape);
  EXPECT_EQ(walked.lines({60, 10})[3].find("│f1"), 0u) << "out to its caller, f0";
}

TEST(Walk, YesIsAskedForOnlyWhereItIsTheQuestion) {
  Walked walked;
  walked.type("o");
  walked.press(static_cast<Key>(21));
  walked.type("y");
  EXPECT_TRUE(walked.shows("Sort keys: y"));
}

TEST(Walk, SamplesOfARowAndOfAllRowsAreListed) {
  Walked walked;
  walked.type("l");
  EXPECT_EQ(walked.lines()[0], "Samples of event 'cpu-clock'");
  EXPECT_EQ(walked.lines()[1], "    time comm pid tid cpu event     sym");
  EXPECT_EQ(walked.lines()[2], "0.000000 one    1   1   0 cpu-clock f2");
  EXPECT_TRUE(walked.shows("1 of 10 "));
  walked.press(Key::End);
  EXPECT_EQ(walked.selected(), "0.000000 two    1   2   0 cpu-clock f1");
  walked.press(Key::Enter);
  EXPECT_TRUE(walked.shows("Call chain, callers below:"));
  EXPECT_TRUE(walked.shows("ffffffff81000108 f1+0x8 ([kernel.kallsyms])"));
  EXPECT_TRUE(walked.shows("ffffffff81000008 f0+0x8 ([kernel.kallsyms])"));
  EXPECT_FALSE(walked.walk->is_at_list());
  walked.type("qq");
  EXPECT_TRUE(walked.walk->is_at_list());
  // f1 of thread two: below it nothing, in it one sample; f0 of thread two: in or below it all four.
  walked.press(Key::End);
  walked.type("v");
  EXPECT_TRUE(walked.shows("1 of 1 "));
  walked.type("q");
  walked.press(Key::Home);
  for (int i = 0; i < 3; ++i) walked.press(Key::Down);
  walked.type("v");
  EXPECT_EQ(walked.lines()[0], "Samples of event 'cpu-clock', of two, in or below f0");
  EXPECT_TRUE(walked.shows("1 of 4 "));
  walked.type("q");
  walked.type("/f3");
  walked.press(Key::Enter);
  walked.type("l");
  EXPECT_TRUE(walked.shows("1 of 3 "));
}

TEST(Walk, ABoxOfAHeatMapIsAskedForAsAFilter) {
  Walked walked;
  walked.type("M");
  EXPECT_TRUE(walked.shows("Heat map of"));
  walked.press(Key::Down);
  walked.press(Key::Enter);  // the period: all are 10
  EXPECT_EQ(walked.lines()[0], "period of cpu-clock: 10 samples, columns of 1 us");
  EXPECT_TRUE(walked.shows("period 10: 10 samples"));
  walked.type("v");
  EXPECT_TRUE(walked.shows("1 of 10 "));
  walked.type("qx");
  EXPECT_TRUE(walked.shows("10 samples in the box, 0 outside"));
  walked.type("q");
  EXPECT_EQ(walked.press(Key::Enter), Walk::Flow::ReadAgain);
  ASSERT_TRUE(walked.walk->wanted_box() && *walked.walk->wanted_box());
  EXPECT_EQ((*walked.walk->wanted_box())->box.low, 10);
  Walked boxed;
  boxed.walk->box(*walked.walk->wanted_box());
  EXPECT_TRUE(boxed.shows(", period 10"));
  EXPECT_EQ(boxed.press(Key::Escape), Walk::Flow::ReadAgain);
  EXPECT_FALSE(*boxed.walk->wanted_box());
}

TEST(Walk, ACaptureIsComparedWithItself) {
  Walked walked;
  walked.type("B");
  EXPECT_TRUE(walked.shows("Earlier capture:"));
  walked.press(static_cast<Key>(21));
  walked.type("nowhere");
  walked.press(Key::Enter);
  EXPECT_TRUE(walked.shows("nowhere: No such file or directory"));
  walked.type("B");
  EXPECT_FALSE(walked.shows(".old")) << "the recorder kept none";
  walked.type("before.data");
  walked.press(Key::Enter);
  EXPECT_EQ(walked.lines()[1], "    Before     After     Delta  Command  Shared Object      Symbol");
  EXPECT_EQ(walked.lines()[2], "+   60.00%    60.00%    +0.00%  one      [kernel.kallsyms]  [k] f2");
  EXPECT_TRUE(walked.shows(", compared with "));
  EXPECT_FALSE(walked.shows("[k] f0")) << "by itself it has nothing";
  walked.type("I");
  EXPECT_TRUE(walked.shows("[k] f0"));
  walked.type("t");
  EXPECT_FALSE(walked.shows("two"));
  const Walk::Memory memory = walked.walk->remember();
  const auto before = walked.lines();
  Walked again;
  again.walk->restore(memory);
  EXPECT_EQ(again.lines()[3], before[3]);
  again.press(Key::Escape);
  again.press(Key::Escape);
  EXPECT_FALSE(again.shows("Before"));
}

TEST(Walk, AnyKeysInAnyOrderAreSafe) {
  Walked walked;
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
    (void)walked.walk->on_key(press);
    const ScreenSize size{static_cast<std::uint16_t>(1 + random() % 150),
                          static_cast<std::uint16_t>(1 + random() % 40)};
    const Frame frame = walked.walk->draw(size);
    for (const FrameRow& row : frame.rows)
      for (const StyledText& run : row.runs) ASSERT_LE(run.column + columns_of(run.text), size.width);
  }
}

}  // namespace
}  // namespace tacho::report
