#include "format/container/loss_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::format {
namespace {

TEST(LossText, TheHeaviestEventAndCpuComeFirst) {
  const std::vector<EventLoss> losses{
      {"cpu-clock", "web", 1, 3}, {"sched:sched_switch", "", 1, 300}, {"sched:sched_switch", "", 0, 900}};
  EXPECT_EQ(where_lost(losses),
            "sched:sched_switch 1200 (CPU 0: 900, CPU 1: 300); cpu-clock in web 3 (CPU 1)");
  EXPECT_EQ(where_lost(std::vector<EventLoss>{{"faults", "", -1, 5}, {"faults", "", -1, 2}}), "faults 7")
      << "of threads";
  EXPECT_EQ(where_lost({}), "");
}

TEST(LossText, OfManyTheFirstAreNamed) {
  std::vector<EventLoss> losses;
  for (int i = 0; i < 6; ++i) losses.push_back({"event" + std::to_string(i), "", 0, 1});
  for (int cpu = 1; cpu < 20; ++cpu) losses.push_back({"event0", "", cpu, 1});
  const std::string text = where_lost(losses);
  EXPECT_NE(text.find("CPU 7: 1, 12 more)"), std::string::npos) << text;
  EXPECT_NE(text.find("; 2 more events"), std::string::npos) << text;
}

TEST(LossText, TimesAreThoseAfterTheFirstSample) {
  RecordingLosses losses;
  EXPECT_EQ(when_lost(losses), "");
  EXPECT_EQ(where_and_when_lost(losses), "");
  losses.interval = {120'000'000, 2'400'999'999};
  EXPECT_EQ(when_lost(losses), "from 0.120 s to 2.400 s after the first sample");
  losses.events = {{"faults", "", -1, 5}};
  EXPECT_EQ(where_and_when_lost(losses), "faults 5, from 0.120 s to 2.400 s after the first sample");
}

}  // namespace
}  // namespace tacho::format
