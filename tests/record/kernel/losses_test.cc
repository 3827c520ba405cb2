#include "record/kernel/losses.h"

#include <gtest/gtest.h>

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

TEST(LossesOfSeveralSources, CgroupsCpusAndNumbersAreToldApart) {
  std::vector<Losses> all;
  add_loss(all, {.event = 1, .id = 7, .lost = 1});
  add_loss(all, {.event = 1, .id = 8, .lost = 1});
  add_loss(all, {.event = 1, .id = 7, .lost = 1, .cgroup = 4});
  add_loss(all, {.event = 1, .id = 7, .lost = 1, .cpu = 2});
  add_loss(all, {.event = 2, .id = 9, .lost = 0});
  EXPECT_EQ(all.size(), 4U);
}

}  // namespace
}  // namespace tacho::record
