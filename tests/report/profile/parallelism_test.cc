#include <gtest/gtest.h>

#include "report/profile/record_facts.h"

namespace tacho::report {
namespace {

format::SwitchRecord leaves() { return {.is_out = true}; }
format::SwitchRecord comes() { return {.is_out = false}; }

TEST(Parallelism, ACommandBeginsWhileItRuns) { EXPECT_EQ(Parallelism(4).now(), 1u); }

TEST(Parallelism, EachSwitchToAThreadAddsOneAndEachFromItTakesOne) {
  Parallelism running(4);
  running.take_record(comes());
  running.take_record(comes());
  EXPECT_EQ(running.now(), 3u);
  running.take_record(leaves());
  EXPECT_EQ(running.now(), 2u);
}

TEST(Parallelism, AThreadThatEndsIsNotSwitchedFrom) {
  Parallelism running(4);
  running.take_record(comes());
  running.take_record(format::TaskRecord{.is_exit = true});
  EXPECT_EQ(running.now(), 1u);
  running.take_record(format::TaskRecord{.is_exit = false});
  EXPECT_EQ(running.now(), 1u) << "a new thread does not run yet";
}

TEST(Parallelism, IsNeverBelowOneAndNeverAboveTheProcessors) {
  Parallelism running(2);
  for (int i = 0; i < 5; ++i) running.take_record(leaves());
  EXPECT_EQ(running.now(), 1u);
  running.take_record(comes());
  EXPECT_EQ(running.now(), 1u) << "what was lost below is still counted, as perf does";
  for (int i = 0; i < 9; ++i) running.take_record(comes());
  EXPECT_EQ(running.now(), 2u);
}

TEST(Parallelism, SwitchesOfAWholeMachineAreNobodys) {
  Parallelism running(std::nullopt);
  for (int i = 0; i < 5; ++i) running.take_record(format::SwitchRecord{.is_cpu_wide = true});
  EXPECT_EQ(running.now(), 1u);
  running.take_record(comes());
  EXPECT_EQ(running.now(), 2u);
}

}  // namespace
}  // namespace tacho::report
