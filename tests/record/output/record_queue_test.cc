#include "record/output/record_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tacho::record {
namespace {

Batch batch_of(std::size_t size, bool ends_round = false) {
  return {std::vector<std::byte>(size), ends_round, {}};
}

TEST(RecordQueue, KeepsOrderAndMarks) {
  RecordQueue queue(100);
  queue.push(batch_of(1));
  queue.push(batch_of(2, true));
  queue.close();
  auto first = queue.pop();
  auto second = queue.pop();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->records.size(), 1u);
  EXPECT_TRUE(second->ends_round);
  EXPECT_FALSE(queue.pop()) << "closed and empty";
}

TEST(RecordQueue, WaitsWhenItIsFull) {
  RecordQueue queue(10);
  queue.push(batch_of(8));
  std::atomic<bool> pushed = false;
  std::thread pusher([&] {
    queue.push(batch_of(8));
    pushed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(pushed) << "the limit is in bytes";
  EXPECT_TRUE(queue.pop());
  pusher.join();
  EXPECT_TRUE(pushed);
  EXPECT_EQ(queue.pop()->records.size(), 8u);
}

TEST(RecordQueue, ABatchLargerThanTheLimitStillGoesThrough) {
  RecordQueue queue(10);
  queue.push(batch_of(50));
  EXPECT_EQ(queue.pop()->records.size(), 50u);
}

TEST(RecordQueue, AbandonedItHoldsNobodyUp) {
  RecordQueue queue(10);
  queue.push(batch_of(10));
  std::thread pusher([&] { queue.push(batch_of(10)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  queue.abandon();
  pusher.join();
  EXPECT_FALSE(queue.pop());
}

TEST(RecordQueue, BuffersGoRoundEmpty) {
  RecordQueue queue(10);
  EXPECT_TRUE(queue.spare_buffer().empty());
  queue.give_back(std::vector<std::byte>(100));
  const auto buffer = queue.spare_buffer();
  EXPECT_TRUE(buffer.empty());
  EXPECT_GE(buffer.capacity(), 100u);
}

}  // namespace
}  // namespace tacho::record
