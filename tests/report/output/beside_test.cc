#include "report/output/beside.h"

#include <gtest/gtest.h>

#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace tacho::report {
namespace {

TEST(Beside, MuchWorkIsDoneWhenWaitReturns) {
  std::vector<int> numbers(100'000);
  Beside work(numbers.size(), [&] { std::iota(numbers.begin(), numbers.end(), 1); });
  work.wait();
  EXPECT_EQ(numbers.front(), 1);
  EXPECT_EQ(numbers.back(), 100'000);
}

TEST(Beside, LittleWorkIsDoneByWhoeverWaits) {
  std::thread::id done_by;
  Beside work(10, [&] { done_by = std::this_thread::get_id(); });
  EXPECT_EQ(done_by, std::thread::id()) << "it is not worth a thread, and nobody has waited yet";
  work.wait();
  EXPECT_EQ(done_by, std::this_thread::get_id());
}

TEST(Beside, WhatTheWorkThrowsReachesWhoeverWaits) {
  for (const std::size_t items : {std::size_t{10}, std::size_t{100'000}}) {
    Beside work(items, [] { throw std::bad_alloc(); });
    EXPECT_THROW(work.wait(), std::bad_alloc) << items;
  }
}

TEST(Beside, WorkThatNobodyWaitsForHasEndedWhenItsOwnerIsGone) {
  bool is_done = false;
  {
    const Beside work(100'000, [&] { is_done = true; });
    if (std::thread::hardware_concurrency() < 2) return;  // nobody waits, so nobody works
  }
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace tacho::report
