#include "record/output/record_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tacho::record {

namespace {

using std::chrono::milliseconds;

bool push(RecordQueue& queue, std::size_t size, bool ends_round = false,
          milliseconds patience = milliseconds(5000)) {
  Batch batch{std::vector<std::byte>(size), ends_round, {}};
  return queue.push_batch(batch, patience);
}

TEST(RecordQueue, KeepsOrderAndMarks) {
  RecordQueue queue(100);
  push(queue, 1);
  push(queue, 2, true);
  queue.close_queue();
  auto first = queue.pop_batch();
  auto second = queue.pop_batch();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->records.size(), 1u);
  EXPECT_TRUE(second->ends_round);
  EXPECT_FALSE(queue.pop_batch()) << "closed and empty";
}

TEST(RecordQueue, WaitsWhenItIsFull) {
  RecordQueue queue(10);
  push(queue, 8);
  std::atomic<bool> pushed = false;
  std::thread pusher([&] { pushed = push(queue, 8); });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(pushed) << "the limit is in bytes";
  EXPECT_TRUE(queue.pop_batch());
  pusher.join();
  EXPECT_TRUE(pushed);
  EXPECT_EQ(queue.pop_batch()->records.size(), 8u);
}

TEST(RecordQueue, ABatchLargerThanTheLimitStillGoesThrough) {
  RecordQueue queue(10);
  push(queue, 50);
  EXPECT_EQ(queue.pop_batch()->records.size(), 50u);
}

TEST(RecordQueue, AbandonedItBlocksNoThread) {
  RecordQueue queue(10);
  push(queue, 10);
  std::thread pusher([&] { push(queue, 10); });
  std::this_thread::sleep_for(milliseconds(20));
  queue.abandon();
  pusher.join();
  EXPECT_FALSE(queue.pop_batch());
  EXPECT_TRUE(push(queue, 10)) << "dropped at once";
}

TEST(RecordQueue, ABatchWithoutRoomStaysWithItsOwner) {
  RecordQueue queue(10);
  ASSERT_TRUE(push(queue, 8));
  Batch batch{std::vector<std::byte>(7), true, {}};
  EXPECT_FALSE(queue.push_batch(batch, milliseconds(10))) << "the owner can look at signals and try again";
  EXPECT_EQ(batch.records.size(), 7u);
  EXPECT_EQ(queue.bytes(), 8u);
  EXPECT_TRUE(queue.pop_batch());
  EXPECT_TRUE(queue.push_batch(batch, milliseconds(10)));
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
