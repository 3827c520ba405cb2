#include "record/channel_sieve.h"

#include <gtest/gtest.h>

#include "format/byte_writer.h"
#include "format/perf_abi.h"

namespace tacho::record {
namespace {

// A record as the kernel writes samples: identifier, ip, process and thread.
void add(std::vector<std::byte>& to, std::uint32_t type, std::uint64_t id, std::uint32_t thread) {
  format::ByteWriter out;
  out.u32(type);
  out.u16(0);
  out.u16(32);
  out.u64(id);
  out.u64(0);
  out.u32(1);
  out.u32(thread);
  to.insert(to.end(), out.view().begin(), out.view().end());
}

std::vector<std::uint32_t> threads_in(const std::vector<std::byte>& records) {
  std::vector<std::uint32_t> threads;
  format::Cursor in(records);
  while (in.left() >= 32) {
    in.skip(28);
    threads.push_back(in.u32());
  }
  return threads;
}

TEST(ChannelSieve, TakesOutSamplesOfOthersAndCountsThem) {
  ChannelSieve sieve({8, 5}, [](int thread) { return thread == 7; });
  std::vector<std::byte> records;
  add(records, format::abi::kRecordSample, 5, 1);  // before `begin`: was sifted already
  const std::size_t begin = records.size();
  add(records, format::abi::kRecordSample, 5, 2);
  add(records, format::abi::kRecordSample, 8, 7);
  add(records, format::abi::kRecordSample, 6, 3);  // of an event that is not everybody's
  add(records, format::abi::kRecordLost, 5, 4);
  add(records, format::abi::kRecordSample, 8, 5);
  sieve.sift(records, begin);
  EXPECT_EQ(threads_in(records), (std::vector<std::uint32_t>{1, 7, 3, 4}));
  EXPECT_EQ(sieve.dropped(), 2u);
}

TEST(ChannelSieve, WhatIsNoRecordStaysForWhoeverCounts) {
  ChannelSieve sieve({5}, [](int) { return false; });
  std::vector<std::byte> records;
  add(records, format::abi::kRecordSample, 5, 2);
  for (const int size : {0, 4, 200}) {
    auto damaged = records;
    damaged.insert(damaged.end(), 10, std::byte{0});
    damaged[38] = static_cast<std::byte>(size);
    ChannelSieve fresh = sieve;
    fresh.sift(damaged, 0);
    EXPECT_EQ(damaged.size(), 10u) << size;
    EXPECT_EQ(damaged[6], static_cast<std::byte>(size));
    EXPECT_EQ(fresh.dropped(), 1u);
  }
}

}  // namespace
}  // namespace tacho::record
