// Frames made by comparing records are zstd's, whatever the records are.
#include "format/codec/delta_matcher.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <random>
#include <string>

#include "format/records/record_view.h"

namespace tacho::format {
namespace {

constexpr std::size_t kMost = std::size_t{256} * 1024;

class Records {
 public:
  // `size` bytes in all, the header included; the words after it are what `word` says, by place.
  template <class Word>
  void add(std::size_t size, Word word) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    const std::uint32_t type = 9;
    const auto short_size = static_cast<std::uint16_t>(size);
    std::memcpy(bytes_.data() + at, &type, sizeof type);
    std::memcpy(bytes_.data() + at + 6, &short_size, sizeof short_size);
    for (std::size_t i = kRecordHeaderSize; i < size; i += 8) {
      const std::uint64_t value = word(i / 8);
      std::memcpy(bytes_.data() + at + i, &value, std::min<std::size_t>(8, size - i));
    }
  }
  Bytes view() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// All frames of the records, each compared with what zstd makes of it. Bytes of the frames, and of records
// that were not alike enough (skipped one by one).
struct Packed {
  std::size_t frames = 0, refused = 0;
};
Packed pack_all(Bytes records, std::size_t most = kMost) {
  DeltaMatcher alike;
  Packed sum;
  while (!records.empty()) {
    Buffer out;
    out.append(records.first(kRecordHeaderSize));  // what stands before stays
    std::size_t size = alike.pack(records, most, out);
    EXPECT_TRUE(std::ranges::equal(Bytes(out).first(kRecordHeaderSize), records.first(kRecordHeaderSize)));
    if (size == 0) {
      EXPECT_EQ(out.size(), kRecordHeaderSize);
      std::uint16_t one;
      std::memcpy(&one, records.data() + 6, sizeof one);
      size = one;
      sum.refused += size;
    } else {
      const Bytes frame = Bytes(out).subspan(kRecordHeaderSize);
      EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), size);
      std::vector<std::byte> back(size);
      const std::size_t got = ZSTD_decompress(back.data(), back.size(), frame.data(), frame.size());
      EXPECT_EQ(got, size) << (ZSTD_isError(got) ? ZSTD_getErrorName(got) : "");
      EXPECT_TRUE(std::ranges::equal(back, records.first(size)));
      sum.frames += frame.size();
    }
    if (testing::Test::HasFailure()) return sum;
    records = records.subspan(size);
  }
  return sum;
}

std::uint64_t time_of(std::uint64_t number) { return 63'636'479'374'512 + number * 2963; }

TEST(DeltaMatcher, SamplesThatDifferInTheirTimeTakeFourBytes) {
  Records records;
  for (std::uint64_t i = 0; i < 5000; ++i)
    records.add(192, [i](std::size_t word) { return word == 4 ? time_of(i) : word * 0x0101'0101; });
  const Packed packed = pack_all(records.view());
  EXPECT_EQ(packed.refused, 0U);
  EXPECT_LT(packed.frames, 5000U * 4);
}

TEST(DeltaMatcher, SeveralKindsByTurns) {
  std::mt19937_64 random(1);
  Records records;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const std::uint64_t kind = random() % 7;
    records.add(64 + 8 * (kind % 3) + kind, [&](std::size_t word) {
      if (word == 4) return time_of(i);
      if (word == 6) return random() % 4;
      return kind * 0x1234'5678'9abc + word;
    });
  }
  const Packed packed = pack_all(records.view());
  EXPECT_EQ(packed.refused, 0U);
  EXPECT_LT(packed.frames, records.view().size() / 3);
}

// Lengths of both kinds around every code's borders, distances near and far, blocks that end anywhere.
TEST(DeltaMatcher, EverySizeAndDifference) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t sizes = 1 + random() % 5, changes = 1 + random() % 400;
    std::vector<std::size_t> of_kind;
    for (std::uint64_t i = 0; i < sizes; ++i) of_kind.push_back(8 + random() % (seed % 3 == 0 ? 65528 : 600));
    Records records;
    while (records.view().size() < 300'000) {
      const std::size_t size = of_kind[random() % of_kind.size()];
      records.add(size, [&](std::size_t word) {
        const std::uint64_t mask = random() % changes != 0 ? 0 : ~std::uint64_t{0} << (random() % 64);
        return (word * 0x9E37'79B9) ^ (random() & mask & (~std::uint64_t{0} >> (random() % 64)));
      });
    }
    SCOPED_TRACE(seed);
    pack_all(records.view(), 1 + random() % kMost);
    if (HasFailure()) return;
  }
}

TEST(DeltaMatcher, EqualRecordsAreOneMatch) {
  Records records;
  for (int i = 0; i < 40000; ++i) records.add(8, [](std::size_t) { return 0; });
  const Packed packed = pack_all(records.view());
  EXPECT_EQ(packed.refused, 0U);
  EXPECT_LT(packed.frames, 200U);
}

TEST(DeltaMatcher, WhatIsNotAlikeIsLeftToZstd) {
  std::mt19937_64 random(1);
  Records records;
  for (int i = 0; i < 500; ++i) records.add(256, [&](std::size_t) { return random(); });
  Buffer out;
  DeltaMatcher alike;
  EXPECT_EQ(alike.pack(records.view(), kMost, out), 0U);
  EXPECT_TRUE(out.empty());
}

TEST(DeltaMatcher, BytesThatAreNoRecordsEndTheFrame) {
  Records records;
  for (int i = 0; i < 50; ++i) records.add(64, [](std::size_t) { return 1; });
  std::vector<std::byte> bytes(records.view().begin(), records.view().end());
  DeltaMatcher alike;
  Buffer out;
  bytes.resize(bytes.size() + 100);  // a size of 0
  EXPECT_EQ(alike.pack(bytes, kMost, out), records.view().size());
  out.clear();
  EXPECT_EQ(alike.pack(Bytes(bytes).first(64 * 20 + 63), kMost, out), 64U * 20);
  out.clear();
  EXPECT_EQ(alike.pack(Bytes(bytes).first(5), kMost, out), 0U);
  EXPECT_EQ(alike.pack({}, kMost, out), 0U);
  EXPECT_EQ(alike.pack(Bytes(bytes).subspan(records.view().size()), kMost, out), 0U);
}

}  // namespace
}  // namespace tacho::format
