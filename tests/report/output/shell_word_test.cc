#include "report/output/shell_word.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

TEST(ShellWord, WhatAShellTakesAsOneWordStandsAsItIs) {
  EXPECT_EQ(shell_word("captures/perf.data"), "captures/perf.data");
  EXPECT_EQ(shell_word("sched:sched_switch"), "sched:sched_switch");
}

TEST(ShellWord, AllElseStandsInSingleQuotes) {
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my capture.data"), "'my capture.data'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
}

TEST(ShellWord, ControlBytesDoNotReachTheTerminal) { EXPECT_EQ(shell_word("a\x1b[2J"), "'a\\x1b[2J'"); }

}  // namespace
}  // namespace tacho::report
