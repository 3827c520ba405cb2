#include <gtest/gtest.h>

#include <string>

#include "report/output/text_output.h"

namespace tacho::report {
namespace {

TEST(SvgText, WhatXmlWouldTakeForMoreThanTextIsEscaped) {
  EXPECT_EQ(xml_text("</script><![CDATA[\"&'\x01]]>"), "&lt;/script&gt;&lt;![CDATA[&quot;&amp;'\\x01]]&gt;");
  EXPECT_EQ(xml_text("a\xef\xbf\xbf\xef\xbf\xbd"), "a\\xef\\xbf\\xbf\xef\xbf\xbd")
      << "U+FFFF may not stand in XML";
}

TEST(SvgText, LongTextsAreCutBetweenLetters) {
  EXPECT_EQ(fitting_text("abcdef", 6 + 6 * kSvgLetter), "abcdef");
  EXPECT_EQ(fitting_text("abcdef", 6 + 5.5 * kSvgLetter), "abcd…");
  EXPECT_EQ(fitting_text("abcdef", 10), "");
  EXPECT_EQ(fitting_text("名名名名", 6 + 7.5 * kSvgLetter), "名名…") << "letters of other scripts are wide";
}

TEST(SvgText, NumbersHaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(SvgText, WhereACaptureComesFromIsSaidAsFarAsItIsKnown) {
  format::Environment environment;
  EXPECT_EQ(with_origin("cycles", environment), "cycles");
  environment.command_line = {"tacho", "record", "--", "./a\x1b"};
  EXPECT_EQ(with_origin("cycles", environment), "cycles: tacho record -- ./a\\x1b");
  environment.hostname = "h\xff";
  EXPECT_EQ(with_origin("", environment), "on h\\xff: tacho record -- ./a\\x1b");
  environment.command_line = {std::string(500, 'x')};
  EXPECT_EQ(with_origin("e", environment), "e on h\\xff: " + std::string(200, 'x') + "...");
}

}  // namespace
}  // namespace tacho::report
