#include "format/base/printable.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

TEST(Printable, LeavesPlainAndForeignLettersAlone) {
  EXPECT_EQ(printable("two words+0x1f [k]"), "two words+0x1f [k]");
  EXPECT_EQ(printable("h\xc3\xa9llo \xe2\x9c\x93 \xe4\xb8\xad \xf0\x9f\x98\x80"),
            "h\xc3\xa9llo \xe2\x9c\x93 \xe4\xb8\xad \xf0\x9f\x98\x80");
}

TEST(Printable, ShowsControlCharactersAsNumbers) {
  EXPECT_EQ(printable("\x1b[31mred\n\t\x7f"), "\\x1b[31mred\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "C1 controls steer terminals as well";
}

TEST(Printable, LinesStayLinesWhereSeveralAreWanted) {
  EXPECT_EQ(printable_lines("a\n\tb\x9b"
                            "1m\r\n\n"),
            "a\n\tb\\x9b1m\\x0d\n\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, ShowsInvalidUtf8AsNumbers) {
  EXPECT_EQ(printable("\xff\xfe"
                      "bad"),
            "\\xff\\xfebad");
  EXPECT_EQ(printable("cut \xe2\x9c"), "cut \\xe2\\x9c");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong form";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, ShowsDirectionOverridesAndHiddenMarksAsNumbers) {
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("a\xe2\x81\xa6"
                      "b"),
            "a\\xe2\\x81\\xa6b");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8") << "a line separator";
}

TEST(Printable, JoinersStayInScriptsThatUseThem) {
  const std::string family = "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9";  // man, ZWJ, woman
  const std::string heart = "\xe2\x9d\xa4\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x94\xa5";
  const std::string persian = "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae";  // mi, ZWNJ, kh
  for (const std::string& name : {family, heart, persian}) EXPECT_EQ(printable(name), name);
  EXPECT_EQ(printable("ma\xe2\x80\x8din"), "ma\\xe2\\x80\\x8din") << "looks like main";
  EXPECT_EQ(printable("\xc3\xa9\xe2\x80\x8c\xc3\xa9"), "\xc3\xa9\\xe2\\x80\\x8c\xc3\xa9");
  EXPECT_EQ(printable("\xd9\x85\xe2\x80\x8c"), "\xd9\x85\\xe2\\x80\\x8c") << "at the end";
  EXPECT_EQ(printable("\xd9\x85\xe2\x80\x8c\xe2\x80\x8c\xd8\xae"),
            "\xd9\x85\\xe2\\x80\\x8c\\xe2\\x80\\x8c\xd8\xae")
      << "two of them";
  EXPECT_EQ(printable("\xd9\x85\xe2\x80\xae\xd8\xae"), "\xd9\x85\\xe2\\x80\\xae\xd8\xae") << "an override";
}

TEST(Printable, NoByteBelowABlankSurvivesWhateverStandsAroundIt) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string name = {static_cast<char>(first), static_cast<char>(second)};
      for (const char c : printable(name)) {
        ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << first << ' ' << second;
      }
      ASSERT_EQ(printable(printable(name)), printable(name)) << "what is safe stays as it is";
    }
  }
}

TEST(Printable, RawNamesStayAsTheyAre) { EXPECT_EQ(printable("\x1b[0m\xff", Names::Raw), "\x1b[0m\xff"); }

TEST(Printable, FoldedNamesHoldNoSeparator) {
  EXPECT_EQ(printable_folded("semi;colon\n5"), "semi:colon\\x0a5");
  EXPECT_EQ(printable_folded("semi;colon", Names::Raw), "semi;colon");
  EXPECT_EQ(printable_folded("thread 12"), "thread 12");
  EXPECT_EQ(printable_leaf("name with number 12"), "name with number\\x2012") << "12 would be a weight";
  EXPECT_EQ(printable_leaf("half 0.5"), "half\\x200.5");
  EXPECT_EQ(printable_leaf("name with 12 blanks "), "name with 12 blanks ");
}

TEST(Printable, ACellOfCsvIsNoFormula) {
  for (const char* const formula : {"=1+1", "+1", "-1+1", "@SUM(A1)", "-"})
    EXPECT_EQ(printable_csv(formula), std::string("'") + formula);
  for (const char* const plain : {"", "a=b", "-5", "-1.5e-07", "dd"}) EXPECT_EQ(printable_csv(plain), plain);
  EXPECT_EQ(printable_csv("=1,2"), "\"'=1,2\"");
  EXPECT_EQ(printable_csv("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(printable_csv("\tx"), "\\x09x");
  EXPECT_EQ(printable_csv("\tx", Names::Raw), "'\tx");
  EXPECT_EQ(printable_csv("\rx", Names::Raw), "\"'\rx\"");
}

}  // namespace
}  // namespace tacho::format
