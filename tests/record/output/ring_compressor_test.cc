// What a ring held comes out again, whatever of it was packed and wherever its end cut a record.

#include "record/output/ring_compressor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
using RecordBytes = std::vector<std::byte>;

// A sample of so many words: identifier, address, thread, time, and what stays the same or does not.
void add_sample(RecordBytes& out, std::size_t words, std::uint64_t time, std::mt19937_64* noise) {
  const std::size_t at = out.size();
  out.resize(at + words * 8);
  const std::uint32_t type = abi::kRecordSample;
  const auto size = static_cast<std::uint16_t>(words * 8);
  std::memcpy(out.data() + at, &type, sizeof type);
  std::memcpy(out.data() + at + 6, &size, sizeof size);
  for (std::size_t i = 1; i < words; ++i) {
    const std::uint64_t word = i == 4 ? time : noise != nullptr ? (*noise)() : 0x7f00'1234'0000 + i;
    std::memcpy(out.data() + at + i * 8, &word, sizeof word);
  }
}

RecordBytes alike(std::size_t count) {
  RecordBytes out;
  for (std::size_t i = 0; i < count; ++i) add_sample(out, 24, 1'000'000 + i * 1400, nullptr);
  return out;
}

// COMPRESSED records inflated, others as they are.
RecordBytes inflated(format::Bytes records) {
  auto inflater = format::RecordInflater::create();
  RecordBytes out;
  while (records.size() >= format::kRecordHeaderSize) {
    std::uint32_t type;
    std::uint16_t size;
    std::memcpy(&type, records.data(), sizeof type);
    std::memcpy(&size, records.data() + 6, sizeof size);
    const format::Bytes record = records.first(size);
    if (type == abi::kRecordCompressed) {
      format::Buffer content;
      EXPECT_TRUE(inflater->inflate(record.subspan(format::kRecordHeaderSize), 1 << 20, content));
      out.insert(out.end(), content.begin(), content.end());
      inflater->reset();
    } else {
      out.insert(out.end(), record.begin(), record.end());
    }
    records = records.subspan(size);
  }
  EXPECT_TRUE(records.empty());
  return out;
}

struct Look {
  RecordBytes out;
  std::vector<CompressedRun> packed;
  RecordCounts counts;  // of all
  std::size_t raw = 0;  // bytes that are not packed
};

// The two runs of a ring whose end is at `cut`. Their entries in `packed` are checked.
void look(RingCompressor& compressor, const RecordBytes& ring, std::size_t cut, Look& to) {
  const std::size_t begin = to.out.size(), first = to.packed.size();
  compressor.begin_look(to.packed);
  compressor.compress_run(format::Bytes(ring).first(cut), to.out, to.packed);
  if (cut != ring.size()) compressor.compress_run(format::Bytes(ring).subspan(cut), to.out, to.packed);
  const format::Bytes all(to.out);
  std::size_t at = begin;
  for (std::size_t i = first; i < to.packed.size(); ++i) {
    const CompressedRun& packed = to.packed[i];
    ASSERT_GE(packed.begin, at);
    ASSERT_LT(packed.begin, packed.end);
    EXPECT_TRUE(count_records(all.subspan(at, packed.begin - at), to.counts));
    to.raw += packed.begin - at;
    const RecordBytes records = inflated(all.subspan(packed.begin, packed.end - packed.begin));
    EXPECT_EQ(records.size(), packed.inflated);
    RecordCounts counted;
    EXPECT_TRUE(count_records(records, counted));
    EXPECT_EQ(counted, packed.counts);
    to.counts.add_counts(packed.counts);
    at = packed.end;
  }
  EXPECT_TRUE(count_records(all.subspan(at), to.counts));
  to.raw += all.size() - at;
  EXPECT_EQ(inflated(all.subspan(begin)), ring);
}

RingCompressor quick_packer() {
  auto compressor = RingCompressor::for_level(format::RecordCompressor::kQuickLevel);
  EXPECT_TRUE(compressor && *compressor);
  return std::move(**compressor);
}

TEST(RingCompressor, IsForTheLevelThatComparesRecords) {
  EXPECT_FALSE(*RingCompressor::for_level(std::nullopt));
  EXPECT_FALSE(*RingCompressor::for_level(3));
  EXPECT_TRUE(*RingCompressor::for_level(1));
}

TEST(RingCompressor, SamplesThatAreAlikeArePackedWhereTheyLie) {
  RingCompressor compressor = quick_packer();
  const RecordBytes ring = alike(3000);
  Look all;
  look(compressor, ring, ring.size(), all);
  EXPECT_EQ(all.packed.size(), 1U);
  EXPECT_EQ(all.raw, 0U);
  EXPECT_LT(all.out.size(), ring.size() / 20);
  EXPECT_EQ(all.counts.samples, 3000U);
  EXPECT_EQ(all.counts.first_time, 1'000'000U);
  EXPECT_EQ(all.counts.last_time, 1'000'000U + 2999 * 1400);
}

TEST(RingCompressor, ARecordThatTheEndOfTheRingCutsIsWhole) {
  RingCompressor compressor = quick_packer();
  const RecordBytes ring = alike(2000);
  for (std::size_t cut = 96'000; cut <= 96'000 + 192; cut += 8) {
    Look all;
    look(compressor, ring, cut, all);
    EXPECT_EQ(all.packed.size(), 1U) << cut;
    EXPECT_EQ(all.raw, 0U) << cut;
    EXPECT_EQ(all.counts.samples, 2000U);
  }
}

// The rest of a ring after its end is often small: that does not make the next ones go another way.
TEST(RingCompressor, ASmallRestDecidesNothing) {
  RingCompressor compressor = quick_packer();
  const RecordBytes ring = alike(1500);
  Look all;
  for (int i = 0; i < 20; ++i) look(compressor, ring, ring.size() - 192 * 2 - 8, all);
  EXPECT_LE(all.raw, 20 * 2 * 192U) << "two records alone are not worth a frame";
  EXPECT_EQ(all.counts.samples, 20 * 1500U);
}

TEST(RingCompressor, TheRunsOfOneRingAreItsOwn) {
  RingCompressor compressor = quick_packer();
  const RecordBytes ring = alike(1000);
  Look all;
  look(compressor, ring, ring.size(), all);
  look(compressor, ring, ring.size(), all);
  EXPECT_EQ(all.packed.size(), 2U);
  EXPECT_EQ(all.counts.samples, 2000U);
}

TEST(RingCompressor, WhatIsNotAlikeStaysAsItIs) {
  RingCompressor compressor = quick_packer();
  std::mt19937_64 noise(1);
  RecordBytes ring;
  for (int i = 0; i < 2000; ++i) add_sample(ring, 24, noise(), &noise);
  Look all;
  look(compressor, ring, 100'000, all);
  EXPECT_GT(all.raw, 0U);
  EXPECT_EQ(all.counts.samples, 2000U);
}

TEST(RingCompressor, WhateverComesIsTheSameAgain) {
  RingCompressor compressor = quick_packer();
  std::mt19937_64 random(2);
  for (int i = 0; i < 60; ++i) {
    RecordBytes ring;
    const bool is_mixed = i % 3 == 1;
    for (std::size_t count = random() % 2000 + 1; count > 0; --count) {
      const bool is_noise = is_mixed ? random() % 4 == 0 : i % 3 == 2;
      add_sample(ring, is_noise ? 6 + random() % 400 : 24, random() % 1'000'000,
                 is_noise ? &random : nullptr);
    }
    Look all;
    look(compressor, ring, random() % (ring.size() / 8 + 1) * 8, all);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

}  // namespace tacho::record
