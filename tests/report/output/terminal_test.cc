#include "report/output/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <string>

#include "format/base/file.h"

namespace tacho::report {

// What only a person at a terminal sees: the pager's choice, colours, the progress line.

namespace {

TEST(Pager, TheVariableOfOurOwnComesFirst) {
  EXPECT_EQ(pager_command("most", "more", true), "most");
  EXPECT_EQ(pager_command(nullptr, "more", true), "more");
  EXPECT_EQ(pager_command(nullptr, nullptr, true), "less");
}

TEST(Pager, AnEmptyVariableAndCatMeanNone) {
  EXPECT_EQ(pager_command("", "more", true), "");
  EXPECT_EQ(pager_command(nullptr, "cat", true), "");
  EXPECT_EQ(pager_command(nullptr, nullptr, false), "");
}

TEST(Colour, IsForPersonsUnlessAskedOtherwise) {
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(has_colour(Colour::Auto, true));
  EXPECT_FALSE(has_colour(Colour::Auto, false));
  EXPECT_TRUE(has_colour(Colour::Always, false));
  EXPECT_FALSE(has_colour(Colour::Never, true));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(has_colour(Colour::Auto, true));
  EXPECT_TRUE(has_colour(Colour::Always, true));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(has_colour(Colour::Auto, true));
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(has_colour(Colour::Auto, true));
}

TEST(Colour, SharesAreColouredAsPerfDoes) {
  EXPECT_EQ(coloured_share(5.0, "  5.00%"), "\033[31m  5.00%\033[m");
  EXPECT_EQ(coloured_share(4.99, "  4.99%"), "\033[32m  4.99%\033[m");
  EXPECT_EQ(coloured_share(0.51, "  0.51%"), "\033[32m  0.51%\033[m");
  EXPECT_EQ(coloured_share(0.5, "  0.50%"), "  0.50%");
  EXPECT_EQ(coloured_share(0.49, "  0.49%"), "  0.49%");
}

TEST(Colour, AWrongWordIsAnError) {
  const auto colour = parse_colour("--stdio-color", "red");
  ASSERT_FALSE(colour);
  EXPECT_EQ(colour.error().what, "--stdio-color: 'red' is none of always, auto and never");
}

// A terminal of our own: what is written to the one end is read from the other.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) return;
    slave_ = format::Fd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY));
    ::fcntl(master_.get(), F_SETFL, O_NONBLOCK);
  }
  int fd() const { return slave_.get(); }
  std::string shown() const {
    std::array<char, 4096> text{};
    const ssize_t got = ::read(master_.get(), text.data(), text.size());
    return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  format::Fd master_, slave_;
};

TEST(Progress, SaysHowFarItIsOnATerminalAndErasesItself) {
  const Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  Progress progress(terminal.fd(), Progress::Clock::duration(0));
  progress.at(4'300'000, 10'000'000);
  EXPECT_EQ(terminal.shown(), "\r\033[Ktacho: 4.3 MB read, 43%");
  progress.stop();
  EXPECT_EQ(terminal.shown(), "\r\033[K");
  progress.at(5'000'000, 10'000'000);
  EXPECT_EQ(terminal.shown(), "");
}

TEST(Progress, OfAPipeNobodyKnowsTheWhole) {
  const Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  Progress progress(terminal.fd(), Progress::Clock::duration(0));
  progress.at(4'300'000, 0);
  EXPECT_EQ(terminal.shown(), "\r\033[Ktacho: 4.3 MB read");
}

TEST(Progress, ShortWorkShowsNothing) {
  const Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  {
    Progress progress(terminal.fd());
    progress.at(1, 2);
  }
  EXPECT_EQ(terminal.shown(), "");
}

TEST(Progress, NothingGoesIntoAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const format::Fd out(ends[0]);
  {
    const format::Fd in(ends[1]);
    Progress progress(in.get(), Progress::Clock::duration(0));
    EXPECT_FALSE(progress.is_on());
    progress.at(1, 2);
  }
  char byte = 0;
  EXPECT_EQ(::read(out.get(), &byte, 1), 0);
}

}  // namespace

namespace {

TEST(Fit, CutsNamesInTheMiddle) {
  EXPECT_EQ(cut_in_the_middle("short", 5), "short");
  EXPECT_EQ(cut_in_the_middle("std::vector<int>::push_back", 12), "std::.._back");
  EXPECT_EQ(cut_in_the_middle("abcdef", 3), "abc");
  EXPECT_EQ(cut_in_the_middle("", 0), "");
  EXPECT_EQ(cut_in_the_middle("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5),
            "\xc3\xa4\xc3\xb6..\xc3\xbc")
      << "characters, not bytes";
}

TEST(Fit, TheWidestNamesGiveUpRoom) {
  std::vector<std::size_t> widths{10, 60, 40, 9};
  fit_columns(widths, {false, true, true, false}, 2, 80);
  EXPECT_EQ(widths, (std::vector<std::size_t>{10, 27, 28, 9}));
  widths = {10, 60};
  fit_columns(widths, {true, true}, 2, 60);
  EXPECT_EQ(widths, (std::vector<std::size_t>{10, 48}));
}

TEST(Fit, NumbersAndShortNamesStayWhole) {
  std::vector<std::size_t> widths{30, 30, 20};
  fit_columns(widths, {false, false, true}, 2, 40);
  EXPECT_EQ(widths, (std::vector<std::size_t>{30, 30, 12})) << "no further";
  widths = {30, 30};
  fit_columns(widths, {true, true}, 2, 0);
  EXPECT_EQ(widths, (std::vector<std::size_t>{30, 30})) << "no limit";
}

}  // namespace

}  // namespace tacho::report
