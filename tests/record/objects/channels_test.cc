#include "record/objects/channels.h"

#include <gtest/gtest.h>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

// A record as the kernel writes samples: identifier, ip, process, thread and time.
void add(std::vector<std::byte>& to, std::uint32_t type, std::uint64_t id, std::uint32_t thread,
         std::uint64_t time = 0) {
  format::ByteWriter out;
  out.u32(type);
  out.u16(0);
  out.u16(40);
  out.u64(id);
  out.u64(0);
  out.u32(1);
  out.u32(thread);
  out.u64(time);
  to.insert(to.end(), out.view().begin(), out.view().end());
}

std::vector<std::uint32_t> threads_in(const std::vector<std::byte>& records) {
  std::vector<std::uint32_t> threads;
  format::Cursor in(records);
  while (in.left() >= 40) {
    in.skip(28);
    threads.push_back(in.u32());
    in.skip(8);
  }
  return threads;
}

TEST(TargetFilter, TakesOutSamplesOfOthersAndCountsThem) {
  TargetFilter target_filter({8, 5}, [](int thread) { return thread == 7; });
  std::vector<std::byte> records;
  add(records, format::abi::kRecordSample, 5, 1);  // before `begin`: was sifted already
  const std::size_t begin = records.size();
  add(records, format::abi::kRecordSample, 5, 2);
  add(records, format::abi::kRecordSample, 8, 7);
  add(records, format::abi::kRecordSample, 6, 3);  // of an event that is not everybody's
  add(records, format::abi::kRecordLost, 5, 4);
  add(records, format::abi::kRecordSample, 8, 5);
  target_filter.remove_unwanted(records, begin);
  EXPECT_EQ(threads_in(records), (std::vector<std::uint32_t>{1, 7, 3, 4}));
  EXPECT_EQ(target_filter.dropped(), 2u);
}

TEST(TargetFilter, OfTheRestEveryNthAndNoMoreThanTheCeiling) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  TargetFilter target_filter({5}, [](int thread) { return thread < 100; });
  target_filter.limit({5, 6}, {.one_in = 2, .most_a_second = 3});
  std::vector<std::byte> records;
  for (std::uint32_t thread = 0; thread < 10; ++thread) {
    add(records, format::abi::kRecordSample, 5, thread, 7 * kSecond);
    add(records, format::abi::kRecordSample, 5, 100 + thread, 7 * kSecond);  // others do not count
  }
  add(records, format::abi::kRecordSample, 6, 50, 8 * kSecond);
  add(records, format::abi::kRecordSample, 8, 60, 8 * kSecond);  // not limited
  add(records, format::abi::kRecordSample, 6, 51, 7 * kSecond);
  add(records, format::abi::kRecordSample, 6, 52, 7 * kSecond);  // late, and counts in the present second
  target_filter.remove_unwanted(records, 0);
  EXPECT_EQ(threads_in(records), (std::vector<std::uint32_t>{0, 2, 4, 50, 60, 52}));
  EXPECT_EQ(target_filter.over_rate(), 2u);
  EXPECT_EQ(target_filter.dropped(), 10u);
}

TEST(TargetFilter, BytesThatAreNoRecordStay) {
  TargetFilter target_filter({5}, [](int) { return false; });
  std::vector<std::byte> records;
  add(records, format::abi::kRecordSample, 5, 2);
  for (const int size : {0, 4, 200}) {
    auto damaged = records;
    damaged.insert(damaged.end(), 10, std::byte{0});
    damaged[46] = static_cast<std::byte>(size);
    TargetFilter fresh = target_filter;
    fresh.remove_unwanted(damaged, 0);
    EXPECT_EQ(damaged.size(), 10u) << size;
    EXPECT_EQ(damaged[6], static_cast<std::byte>(size));
    EXPECT_EQ(fresh.dropped(), 1u);
  }
}

}  // namespace

}  // namespace tacho::record
