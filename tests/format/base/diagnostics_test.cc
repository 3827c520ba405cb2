#include "format/base/diagnostics.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

TEST(Diagnostics, KeepsOneLineForAKindWithItsCountAndFirstPlace) {
  Diagnostics diagnostics;
  diagnostics.add_finding(Damage::BadRecord, 4096, "size 0");
  diagnostics.add_finding(Damage::BadRecord, 8192, "size 3");
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(Diagnostics::finding_text(diagnostics.findings()[0]),
            "unreadable record: size 0 (first at offset 4096, 2 times)");
}

TEST(Diagnostics, OnlyWhatIsMissingFromTheResultMakesItIncomplete) {
  Diagnostics diagnostics;
  diagnostics.add_line(Damage::NoSymbols, "libfoo.so: stripped");
  diagnostics.add_finding(Damage::UnknownRecord, 8, "type 4000");
  EXPECT_FALSE(diagnostics.incomplete());
  diagnostics.add_finding(Damage::CutShort, 100, "");
  EXPECT_TRUE(diagnostics.incomplete());
}

TEST(Diagnostics, LinesOfTheirOwnAreAllKept) {
  Diagnostics diagnostics;
  diagnostics.add_line(Damage::NoSymbols, "a");
  diagnostics.add_line(Damage::NoSymbols, "b");
  ASSERT_EQ(diagnostics.findings().size(), 2u);
  EXPECT_EQ(Diagnostics::finding_text(diagnostics.findings()[1]), "no symbols: b");
}

TEST(Diagnostics, WhatIsTakenKeepsItsCountsAndBytes) {
  Diagnostics reading, all;
  reading.add_finding(Damage::BadRecord, 4096, "size 0", 2, 24);
  all.take_findings(reading);
  EXPECT_TRUE(reading.findings().empty());
  reading.add_finding(Damage::BadRecord, 8192, "size 3", 1, 8);
  all.take_findings(reading);
  ASSERT_EQ(all.findings().size(), 1u);
  EXPECT_EQ(Diagnostics::finding_text(all.findings()[0]),
            "unreadable record: size 0 (first at offset 4096, 3 times, 32 bytes in all)");
}

}  // namespace
}  // namespace tacho::format
