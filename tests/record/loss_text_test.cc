#include "record/loss_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::record {
namespace {

TEST(LossText, TheHeaviestEventAndCpuComeFirst) {
  const std::vector<LossAt> losses{
      {"cpu-clock", 1, 3}, {"sched:sched_switch", 1, 300}, {"sched:sched_switch", 0, 900}};
  EXPECT_EQ(where_lost(losses), "sched:sched_switch 1200 (CPU 0: 900, CPU 1: 300); cpu-clock 3 (CPU 1)");
  EXPECT_EQ(where_lost(std::vector<LossAt>{{"faults", -1, 5}, {"faults", -1, 2}}), "faults 7")
      << "of threads";
  EXPECT_EQ(where_lost({}), "");
}

TEST(LossText, OfManyTheFirstAreNamed) {
  std::vector<LossAt> losses;
  for (int i = 0; i < 6; ++i) losses.push_back({"event" + std::to_string(i), 0, 1});
  for (int cpu = 1; cpu < 20; ++cpu) losses.push_back({"event0", cpu, 1});
  const std::string text = where_lost(losses);
  EXPECT_NE(text.find("CPU 7: 1, 12 more)"), std::string::npos) << text;
  EXPECT_NE(text.find("; 2 more events"), std::string::npos) << text;
}

TEST(LossText, TimesAreThoseAfterTheFirstSample) {
  RecordCounts counts;
  EXPECT_EQ(when_lost(counts), "");
  counts = {10, 5, 1'000'000'000, 9'000'000'000, 1'120'000'000, 3'400'000'000};
  EXPECT_EQ(when_lost(counts), "from 0.120 s to 2.400 s after the first sample");
  counts.lost_first = 1;
  EXPECT_EQ(when_lost(counts), "from 0.000 s to 2.400 s after the first sample")
      << "before it, on another CPU";
}

}  // namespace
}  // namespace tacho::record
