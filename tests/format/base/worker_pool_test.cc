#include "format/base/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tacho::format {
namespace {

TEST(WorkerPool, RunsEachTaskOnceForAnyNumberOfWorkers) {
  for (const unsigned workers : {0U, 1U, 2U, 3U, 8U}) {
    WorkerPool pool(workers);
    for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
      std::vector<int> runs(count);  // of different tasks: different elements
      ASSERT_TRUE(pool.run_tasks(count, [&](std::size_t number, unsigned) -> Result<> {
        ++runs[number];
        return Done{};
      }));
      EXPECT_EQ(std::accumulate(runs.begin(), runs.end(), 0), static_cast<int>(count));
      EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), static_cast<int>(count));
    }
  }
}

TEST(WorkerPool, WhatIsKeptByWorkerNeedsNoLock) {
  WorkerPool pool(4);
  std::array<std::size_t, 4> sums{};  // ThreadSanitizer would see two tasks with the same worker
  std::size_t expected = 0;
  for (std::size_t round = 0; round < 200; ++round) {
    ASSERT_TRUE(pool.run_tasks(50, [&](std::size_t number, unsigned worker) -> Result<> {
      sums.at(worker) += number;
      return Done{};
    }));
    expected += 49 * 50 / 2;
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::size_t{0}), expected);
}

TEST(WorkerPool, TheCallerWorksOnBetweenForkAndJoin) {
  WorkerPool pool(2);
  ASSERT_EQ(pool.workers(), 2U);
  std::atomic<bool> is_done = false;
  auto forked = pool.fork(1, [&](std::size_t, unsigned worker) -> Result<> {
    EXPECT_EQ(worker, 1U) << "the caller's thread takes tasks in join() only";
    is_done = true;
    is_done.notify_all();
    return Done{};
  });
  is_done.wait(false);
  EXPECT_TRUE(forked.join());
}

TEST(WorkerPool, TheErrorIsThatOfTheLowestNumberAndStopsTheRest) {
  for (const unsigned workers : {1U, 2U, 8U}) {
    WorkerPool pool(workers);
    for (int round = 0; round < 50; ++round) {
      std::atomic<std::size_t> highest = 0;
      const auto result = pool.run_tasks(100'000, [&](std::size_t number, unsigned) -> Result<> {
        if (number > highest) highest = number;
        if (number >= 10) return Error{"task " + std::to_string(number)};
        return Done{};
      });
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().what, "task 10");
      EXPECT_LT(highest.load(), 10 + workers);
    }
    EXPECT_TRUE(pool.run_tasks(3, [](std::size_t, unsigned) -> Result<> { return Done{}; }))
        << "it is usable again";
  }
}

TEST(WorkerPool, ThrowsWhatATaskThrew) {
  for (const unsigned workers : {1U, 3U}) {
    WorkerPool pool(workers);
    EXPECT_THROW(static_cast<void>(pool.run_tasks(100,
                                                  [](std::size_t number, unsigned) -> Result<> {
                                                    if (number == 7) throw std::runtime_error("seven");
                                                    return Done{};
                                                  })),
                 std::runtime_error);
    EXPECT_TRUE(pool.run_tasks(1, [](std::size_t, unsigned) -> Result<> { return Done{}; }));
  }
}

TEST(WorkerPool, TasksOfAForkThatIsNotJoinedAreDropped) {
  WorkerPool pool(2);
  std::atomic<std::size_t> runs = 0;
  {
    auto forked = pool.fork(1'000'000, [&](std::size_t, unsigned) -> Result<> {
      ++runs;
      return Done{};
    });
    while (runs == 0) std::this_thread::yield();
    // What was begun is over when this block is.
  }
  const std::size_t seen = runs;
  ASSERT_TRUE(pool.run_tasks(1, [](std::size_t, unsigned) -> Result<> { return Done{}; }));
  EXPECT_EQ(runs.load(), seen);
}

TEST(WorkerPool, SlicesCoverEverything) {
  WorkerPool pool(3);
  for (const std::size_t count : {0U, 1U, 9U, 10U, 11U, 100U}) {
    std::vector<int> seen(count);
    for_slices(pool, count, 10, [&](std::size_t begin, std::size_t end) {
      EXPECT_LE(end - begin, 10U);
      for (; begin < end; ++begin) ++seen[begin];
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int>(count));
  }
}

}  // namespace
}  // namespace tacho::format
