#include "report/output/quantity_text.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

TEST(QuantityText, TimesAreInTheUnitThatGivesThreeDigits) {
  EXPECT_EQ(quantity_text(0, "ns"), "0 ns");
  EXPECT_EQ(quantity_text(0.25, "ns"), "0.25 ns");
  EXPECT_EQ(quantity_text(380, "ns"), "380 ns");
  EXPECT_EQ(quantity_text(1'500'000, "ns"), "1.50 ms");
  EXPECT_EQ(quantity_text(9'931'000'000, "ns"), "9.93 s");
  EXPECT_EQ(quantity_text(4'000'000'000'000, "ns"), "4000 s");
  EXPECT_EQ(quantity_text(1500, "us"), "1.50 ms");
  EXPECT_EQ(quantity_text(-20'000, "ns"), "-20 us");
}

TEST(QuantityText, WhatRoundsToTheNextUnitIsInIt) {
  EXPECT_EQ(quantity_text(999'400, "ns"), "999 us");
  EXPECT_EQ(quantity_text(999'900, "ns"), "1.00 ms");
  EXPECT_EQ(quantity_text(999'999'999, "ns"), "1.00 s");
}

TEST(QuantityText, Sizes) {
  EXPECT_EQ(quantity_text(0, "bytes"), "0 B");
  EXPECT_EQ(quantity_text(65'536, "bytes"), "64 KiB");
  EXPECT_EQ(quantity_text(1'010, "bytes"), "1010 B");
  EXPECT_EQ(quantity_text(1'536, "KiB"), "1.50 MiB");
  EXPECT_EQ(quantity_text(8, "sectors"), "4 KiB");
}

TEST(QuantityText, CountsAreExactBelowAMillion) {
  EXPECT_EQ(quantity_text(1'204, ""), "1,204");
  EXPECT_EQ(quantity_text(999'999, "samples"), "999,999 samples");
  EXPECT_EQ(quantity_text(1, "samples"), "1 sample");
  EXPECT_EQ(quantity_text(1'234'567, "page-faults"), "1.23 M page-faults");
  EXPECT_EQ(quantity_text(2.5, ""), "2.50");
  EXPECT_EQ(quantity_text(143'100'000'000, "cycles"), "143 G cycles");
  EXPECT_EQ(quantity_text(2e9, "cycles"), "2 G cycles");
}

TEST(QuantityText, PercentAndUnitsOfCaptures) {
  EXPECT_EQ(quantity_text(14.21, "%"), "14.2 %");
  EXPECT_EQ(quantity_text(100, "%"), "100 %");
  EXPECT_EQ(quantity_text(0.01234, "%"), "0.0123 %");
  EXPECT_EQ(quantity_text(9.999, "%"), "10.0 %");
  EXPECT_EQ(quantity_text(3, "a\x1b[31m"), "3 a\\x1b[31m");
}

TEST(QuantityText, ChangesHaveASign) {
  EXPECT_EQ(change_text(1'500'000, "ns"), "+1.50 ms");
  EXPECT_EQ(change_text(-3, ""), "-3");
  EXPECT_EQ(change_text(0, ""), "+0");
}

}  // namespace
}  // namespace tacho::report
