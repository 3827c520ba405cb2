#include "record/kernel/losses.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tacho::record {

namespace {

TEST(LossesOfSeveralSources, WhatIsOfTheSameStandsOnce) {
  std::vector<Losses> all;
  add_loss(all, {.event = 1, .id = 7, .lost = 5});
  add_loss(all, {.event = 1, .id = 7, .lost = 0});
  add_loss(all, {.event = 1, .id = 7, .lost = 3, .first = 20, .last = 30});
  add_loss(all, {.event = 1, .id = 7, .lost = 2, .first = 10, .last = 25});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].lost, 10U);
  EXPECT_EQ(all[0].first, 10U);
  EXPECT_EQ(all[0].last, 30U);
}

TEST(LossesOfSeveralSources, CgroupsCpusAndIdsAreDistinguished) {
  std::vector<Losses> all;
  add_loss(all, {.event = 1, .id = 7, .lost = 1});
  add_loss(all, {.event = 1, .id = 8, .lost = 1});
  add_loss(all, {.event = 1, .id = 7, .lost = 1, .cgroup = 4});
  add_loss(all, {.event = 1, .id = 7, .lost = 1, .cpu = 2});
  add_loss(all, {.event = 2, .id = 9, .lost = 0});
  EXPECT_EQ(all.size(), 4U);
}

}  // namespace

namespace {

constexpr std::uint64_t kId = 100, kOtherId = 101, kCgroup = 7;

Losses named(std::uint64_t lost, std::uint64_t cgroup = kCgroup, std::uint64_t id = kId) {
  return {.event = 0, .id = id, .lost = lost, .cgroup = cgroup, .first = 1, .last = 1000};
}
Losses of_nobody(std::uint64_t lost) { return {.event = 0, .id = kId, .lost = lost}; }

std::uint64_t sum(const std::vector<Losses>& losses) {
  std::uint64_t all = 0;
  for (const Losses& loss : losses) all += loss.lost;
  return all;
}

TEST(ReportedLost, AreTheDifferencesOfSums) {
  ReportedLost reported;
  EXPECT_EQ(sum(reported.take_unreported({named(3), named(4, kCgroup, kOtherId)})), 7u);
  const auto news = reported.take_unreported({named(5), named(4, kCgroup, kOtherId)});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].id, kId);
  EXPECT_EQ(news[0].lost, 2u);
  EXPECT_TRUE(reported.take_unreported({named(5), named(4, kCgroup, kOtherId)}).empty());
}

TEST(ReportedLost, ALossAttributedLaterIsReportedOnce) {
  ReportedLost reported;
  EXPECT_EQ(sum(reported.take_unreported({named(10), of_nobody(4)})), 14u);
  EXPECT_TRUE(reported.take_unreported({named(14)}).empty()) << "the same ones, by name";
  EXPECT_TRUE(reported.take_unreported({named(13), of_nobody(1)}).empty());
  EXPECT_EQ(sum(reported.take_unreported({named(16), of_nobody(1)})), 3u);
}

TEST(ReportedLost, ARemainderThatShrinksReportsNothing) {
  ReportedLost reported;
  EXPECT_EQ(sum(reported.take_unreported({of_nobody(4)})), 4u);
  EXPECT_TRUE(reported.take_unreported({of_nobody(1)}).empty()) << "2^64 - 3 otherwise";
  EXPECT_EQ(sum(reported.take_unreported({of_nobody(6)})), 2u);
}

TEST(ReportedLost, NamesComeFirst) {
  ReportedLost reported;
  EXPECT_EQ(sum(reported.take_unreported({of_nobody(2)})), 2u);
  const auto news = reported.take_unreported({of_nobody(3), named(4)});
  ASSERT_EQ(news.size(), 2u);
  EXPECT_EQ(news[0].cgroup, kCgroup);
  EXPECT_EQ(news[0].lost, 4u);
  EXPECT_EQ(news[1].lost, 1u);
}

TEST(ReportedLost, EventsHaveTotalsOfTheirOwn) {
  ReportedLost reported;
  const Losses other{.event = 1, .id = 200, .lost = 50};
  EXPECT_EQ(sum(reported.take_unreported({of_nobody(9), other})), 59u);
  Losses more = other;
  more.lost = 53;
  const auto news = reported.take_unreported({of_nobody(2), more});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].event, 1u);
  EXPECT_EQ(news[0].lost, 3u);
}

TEST(ReportedLost, FilesSumUpToTheTotal) {
  constexpr int kFiles = 500;
  ReportedLost reported;
  std::uint64_t state = 1, total = 0, sums = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> lost, sums_of;
  const auto random = [&state](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (int file = 0; file < kFiles; ++file) {
    for (std::uint64_t more = random(6); more > 0; --more, ++total)
      ++lost[{kId + random(2), kCgroup + random(2)}];
    std::vector<Losses> all;
    std::uint64_t known = 0;
    for (const auto& [name, count] : lost) {
      const std::uint64_t seen = count - random(count + 1) / 4;  // of the others the name comes later
      if (seen != 0) all.push_back(named(seen, name.second, name.first));
      known += seen;
    }
    if (total > known) all.push_back(of_nobody(total - known));
    for (const Losses& loss : reported.take_unreported(all)) {
      sums += loss.lost;
      sums_of[{loss.id, loss.cgroup}] += loss.lost;
    }
    ASSERT_EQ(sums, total) << file;
  }
  sums_of.erase({kId, 0});
  for (const auto& [name, count] : sums_of) EXPECT_LE(count, lost[name]) << name.first << ' ' << name.second;
}

}  // namespace

}  // namespace tacho::record
