#include "report/samples/sample_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "report/samples/stable_array.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMegabyte = 17;  // of the largest records, which have 65,535 bytes: a little more
constexpr std::uint16_t kLargest = 65535;

// A batch of `count` samples with different periods, each of a record of `size` bytes.
SampleBatch batch_of(std::uint64_t first, std::size_t count, std::uint16_t size = 64) {
  const auto block = std::make_shared<format::Block>();
  SampleBatch batch;
  for (std::size_t i = 0; i < count; ++i) {
    QueuedSample sample;
    sample.size = size;
    sample.period = first + i;
    batch.add(sample, block);
  }
  return batch;
}

TEST(SampleQueue, SamplesComeOutInOrderWithTheirBlocks) {
  SampleQueue queue;
  constexpr std::uint64_t kBatches = 500, kEach = 100;
  std::jthread reader([&queue] {
    for (std::uint64_t i = 0; i < kBatches; ++i) {
      SampleBatch batch = batch_of(i * kEach, kEach);
      ASSERT_TRUE(queue.put(batch));
      ASSERT_TRUE(batch.samples.empty() && batch.blocks.empty() && batch.bytes == 0);
    }
    queue.end();
  });
  SampleBatch batch;
  std::uint64_t expected = 0;
  while (queue.take(batch)) {
    ASSERT_EQ(batch.blocks.size(), 1u);
    for (const QueuedSample& sample : batch.samples) ASSERT_EQ(sample.period, expected++);
  }
  EXPECT_EQ(expected, kBatches * kEach);
}

TEST(SampleQueue, TheReaderWaitsWhenTooManyBytesAreHeld) {
  SampleQueue queue;
  std::atomic<int> put = 0;
  std::jthread reader([&] {
    for (int i = 0; i < 64; ++i) {
      SampleBatch batch = batch_of(0, kMegabyte, kLargest);
      if (!queue.put(batch)) return;
      ++put;
    }
    queue.end();
  });
  while (put < 2) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(put, 2) << "of a megabyte each";
  SampleBatch batch;
  std::size_t taken = 0;
  while (queue.take(batch)) taken += batch.samples.size();
  EXPECT_EQ(taken, 64 * kMegabyte);
}

TEST(SampleQueue, AReaderWhoWaitsIsToldThatNobodyWantsMore) {
  SampleQueue queue;
  std::jthread reader([&queue] {
    SampleBatch batch = batch_of(0, kMegabyte, kLargest);
    while (queue.put(batch)) batch = batch_of(0, kMegabyte, kLargest);
    queue.end();
  });
  SampleBatch batch;
  ASSERT_TRUE(queue.take(batch));
  queue.stop();
}

TEST(SampleQueue, WhatWasPutIsShownBeforeSharedThingsChange) {
  SampleQueue queue;
  std::atomic<std::uint64_t> shown = 0;
  std::jthread reader([&] {
    for (std::uint64_t i = 1; i <= 200; ++i) {
      SampleBatch batch = batch_of(0, 10);
      queue.put(batch);
      queue.wait_until_taken();
      ASSERT_EQ(shown, i * 10);
    }
    queue.end();
  });
  SampleBatch batch;
  while (queue.take(batch)) {
    for (std::size_t i = 0; i < batch.samples.size(); ++i) ++shown;
  }
  EXPECT_EQ(shown, 2000u);
}

TEST(SampleQueue, ABatchWithoutSamplesTellsHowFarTheReadingIs) {
  SampleQueue queue;
  SampleBatch batch, taken;
  EXPECT_TRUE(queue.put(batch)) << "an empty batch is not put";
  batch.bytes_read = 4096;
  EXPECT_TRUE(queue.put(batch));
  EXPECT_EQ(batch.bytes_read, 0u);
  queue.end();
  ASSERT_TRUE(queue.take(taken));
  EXPECT_EQ(taken.bytes_read, 4096u);
  EXPECT_FALSE(queue.take(taken));
}

TEST(SampleBatch, EverySampleNamesTheBlockItsRecordLiesIn) {
  const format::BlockRef one = std::make_shared<format::Block>(), two = std::make_shared<format::Block>();
  SampleBatch batch;
  for (const format::BlockRef& block : {one, two, one, two}) batch.add({}, block);
  ASSERT_EQ(batch.blocks.size(), 2u);
  for (const std::size_t i : {0U, 2U}) EXPECT_EQ(batch.blocks[batch.samples[i].block], one);
  for (const std::size_t i : {1U, 3U}) EXPECT_EQ(batch.blocks[batch.samples[i].block], two);
}

TEST(StableArray, ItemsStayWhereTheyAre) {
  StableArray<std::uint64_t> array;
  std::vector<const std::uint64_t*> places;
  for (std::uint64_t i = 0; i < 100'000; ++i) places.push_back(&array.push_back(i));
  ASSERT_EQ(array.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    ASSERT_EQ(array[i], i);
    ASSERT_EQ(&array[i], places[i]);
  }
}

}  // namespace
}  // namespace tacho::report
