#include <gtest/gtest.h>

#include "report/output/terminal.h"

namespace tacho::report {
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
