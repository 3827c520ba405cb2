#include "report/views/tui/time_strip.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

KeyPress key(Key key) { return {.key = key, .size = {}}; }

TEST(TimeCounts, CountsStayWhateverTheTimesAre) {
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{1000}, kSecond, 1000 * kSecond}) {
    TimeCounts counts;
    for (std::uint64_t i = 0; i < 10'000; ++i) counts.add_time(5 * kSecond + i * step);
    EXPECT_LE(counts.begin(), 5 * kSecond);
    EXPECT_GT(counts.end(), 5 * kSecond + 9999 * step);
    for (const std::size_t columns : {std::size_t{1}, std::size_t{80}, std::size_t{200}, std::size_t{4096}}) {
      if (step >= 1000 || columns == 1) {
        EXPECT_GE(sum(counts.columns(columns)), 10'000U);
      }
    }
  }
}

TEST(TimeCounts, OlderAndHostileTimesAreTakenToo) {
  TimeCounts counts;
  counts.add_time(100 * kSecond);
  counts.add_time(99 * kSecond);
  counts.add_time(1);
  counts.add_time(~std::uint64_t{0});
  counts.add_time(0);
  EXPECT_EQ(counts.begin(), 0U);
  EXPECT_EQ(sum(counts.columns(80)), 5U);
  EXPECT_TRUE(counts.columns(0).empty());
}

TEST(TimeCounts, EachIntervalIsSeenWhereColumnsAreMore) {
  TimeCounts counts;
  for (std::uint64_t i = 0; i < 13; ++i) counts.add_time(kSecond + i * 1'000'000);
  for (const std::size_t columns : {std::size_t{13}, std::size_t{80}, std::size_t{200}})
    for (const std::uint64_t count : counts.columns(columns)) EXPECT_EQ(count, 1U);
}

TEST(TimeStrip, ARangeIsWhatTimeTakes) {
  TimeCounts counts;
  for (std::uint64_t i = 0; i < 8000; ++i) counts.add_time(10 * kSecond + i * 1'000'000);
  TimeStrip strip(counts, {});
  Frame frame({80, 24});
  strip.draw(frame, 18);
  EXPECT_EQ(strip.on_key(key(Key::PageDown)), TimeStrip::Flow::Stay);
  EXPECT_EQ(strip.on_key(key(static_cast<Key>(' '))), TimeStrip::Flow::Stay);
  for (int i = 0; i < 9; ++i) (void)strip.on_key(key(Key::Right));
  EXPECT_EQ(strip.on_key(key(Key::Enter)), TimeStrip::Flow::Chosen);
  EXPECT_EQ(strip.range(), "11.000000000,11.999999999");
  EXPECT_TRUE(parse_times(strip.range(), {}));
  EXPECT_EQ(strip.on_key(key(Key::Backspace)), TimeStrip::Flow::All);
  EXPECT_FALSE(strip.state().mark || strip.state().chosen);
  EXPECT_EQ(strip.on_key(key(static_cast<Key>('a'))), TimeStrip::Flow::Unknown);
  EXPECT_EQ(strip.on_key(key(Key::Escape)), TimeStrip::Flow::Leave);
}

TEST(TimeStrip, BarsAreAsHighAsTheirCounts) {
  TimeCounts counts;
  for (std::uint64_t i = 0; i < 40; ++i)
    for (std::uint64_t n = 0; n <= i; ++n) counts.add_time(kSecond + i * 1'000'000);
  TimeStrip strip(counts, {.cursor = 2 * kSecond, .mark = {}, .chosen = {}});
  Frame frame({40, 6});
  strip.draw(frame, 0);
  EXPECT_EQ(text_of(frame.rows[0]), "Samples over time: 1 at 1.000 s");
  EXPECT_EQ(text_of(frame.rows[1]).back(), "█"[2]);
  EXPECT_EQ(columns_of(text_of(frame.rows[4])), 40U);
  EXPECT_EQ(text_of(frame.rows[5]), "1.000 s                          1.040 s");
}

// Any keys at any size.
TEST(TimeStrip, NoKeyLeavesTheScreen) {
  TimeCounts counts;
  counts.add_time(7);
  TimeStrip strip(counts, {});
  for (std::uint16_t width = 1; width < 60; ++width) {
    Frame frame({width, 10});
    for (const Key one :
         {Key::End, Key::Right, Key::PageDown, static_cast<Key>(' '), Key::Left, Key::Home, Key::Enter}) {
      (void)strip.on_key(key(one));
      strip.draw(frame, 2);
      EXPECT_TRUE(parse_times(strip.range(), {})) << strip.range();
    }
    for (const FrameRow& row : frame.rows) EXPECT_LE(columns_of(text_of(row)), width);
  }
}

}  // namespace
}  // namespace tacho::report
