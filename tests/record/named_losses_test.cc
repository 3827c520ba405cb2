#include "record/named_losses.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::record {
namespace {

constexpr std::uint64_t kId = 100, kCgroup = 7, kOther = 8;

TEST(NamedLosses, WhatProgramsNotedHasItsCgroupAndTime) {
  Losses counted{.event = 2, .id = kId, .lost = 10};
  const auto named = take_named(counted, {{0, kCgroup, 6, 50, 90}, {0, kOther, 3, 60, 70}});
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].event, 2u);
  EXPECT_EQ(named[0].id, kId);
  EXPECT_EQ(named[0].lost, 6u);
  EXPECT_EQ(named[0].cgroup, kCgroup);
  EXPECT_EQ(named[0].first, 50u);
  EXPECT_EQ(named[0].last, 90u);
  EXPECT_EQ(named[1].cgroup, kOther);
  EXPECT_EQ(counted.lost, 1u) << "written by somebody who does not note losses";
}

TEST(NamedLosses, NoMoreIsToldThanTheKernelCounted) {
  Losses counted{.event = 0, .id = kId, .lost = 4};
  const auto named = take_named(counted, {{0, kCgroup, 3, 1, 2}, {0, kOther, 3, 1, 2}, {0, 9, 5, 1, 2}});
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].lost + named[1].lost, 4u);
  EXPECT_EQ(counted.lost, 0u);
}

}  // namespace
}  // namespace tacho::record
