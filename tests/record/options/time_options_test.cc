#include "record/options/time_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::record {

namespace {

using std::chrono::milliseconds;

Delay delay_of(std::string_view text) {
  const auto delay = parse_delay(text);
  EXPECT_TRUE(delay) << text;
  return delay ? *delay : Delay{};
}

TEST(Schedule, DelaysAreNumbersOrIntervals) {
  EXPECT_TRUE(delay_of("-1").starts_disabled);
  EXPECT_TRUE(delay_of("0").ranges.empty()) << "from the start on";
  EXPECT_EQ(delay_of("250").ranges, (std::vector<TimeRange>{{milliseconds(250), {}}}));
  EXPECT_EQ(delay_of("0-5,10-20").ranges, (std::vector<TimeRange>{{milliseconds(0), milliseconds(5)},
                                                                  {milliseconds(10), milliseconds(20)}}));
  for (const char* text :
       {"", "-2", "x", "5-", "5-5", "9-3", "1-2,", "1-2,2-3", "1-2,x", "1,2", "1-2-3", "99999999999"}) {
    EXPECT_FALSE(parse_delay(text)) << text;
  }
}

TEST(Schedule, TimesHaveUnits) {
  const auto ms = [](std::string_view text) { return parse_duration("--duration", text)->count(); };
  EXPECT_EQ(ms("10"), 10'000);
  EXPECT_EQ(ms("0.25s"), 250);
  EXPECT_EQ(ms("1ms"), 1);
  EXPECT_EQ(ms("2m"), 120'000);
  EXPECT_EQ(ms("1d"), 86'400'000);
  for (const char* text : {"", "s", "0", "-1", "1x", "nan", "inf", "1e9", "0.0001", "400d", "1 s"}) {
    const auto wrong = parse_duration("--duration", text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().what.find("--duration: '" + std::string(text)), 0u) << wrong.error().what;
  }
}

TEST(Schedule, WithoutOptionsNothingIsDue) {
  Schedule schedule({}, {}, false);
  EXPECT_TRUE(schedule.starts_enabled());
  EXPECT_FALSE(schedule.next_step());
  EXPECT_FALSE(schedule.take_due(milliseconds(1 << 30)));
}

TEST(Schedule, IntervalsSwitchOnAndOffAndThenItIsOver) {
  Schedule schedule(delay_of("10-20,30-40"), {}, false);
  EXPECT_FALSE(schedule.starts_enabled());
  EXPECT_EQ(schedule.next_step(), milliseconds(10));
  EXPECT_FALSE(schedule.take_due(milliseconds(9)));
  EXPECT_EQ(schedule.take_due(milliseconds(10)), Due::Enable);
  EXPECT_FALSE(schedule.take_due(milliseconds(10)));
  EXPECT_EQ(schedule.take_due(milliseconds(500)), Due::Disable) << "late steps come one by one, in order";
  EXPECT_EQ(schedule.take_due(milliseconds(500)), Due::Enable);
  EXPECT_EQ(schedule.take_due(milliseconds(500)), Due::Disable);
  EXPECT_EQ(schedule.take_due(milliseconds(500)), Due::Stop);
  EXPECT_FALSE(schedule.next_step());
}

TEST(Schedule, ACommandMayEndIt) {
  Schedule schedule(delay_of("0-20"), {}, true);
  EXPECT_TRUE(schedule.starts_enabled());
  EXPECT_EQ(schedule.take_due(milliseconds(20)), Due::Disable);
  EXPECT_FALSE(schedule.next_step());
}

TEST(Schedule, ADurationEndsIt) {
  Schedule schedule(delay_of("50"), milliseconds(40), false);
  EXPECT_EQ(schedule.take_due(milliseconds(45)), Due::Stop) << "before the delay was over";
}

}  // namespace

}  // namespace tacho::record
