#include "format/codec/compression.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "format/container/inflate_ahead.h"
#include "format/records/record.h"

namespace tacho::format {
namespace {

// Whole COMM records, `count` of them; `noise` fills their names with what does not compress.
ByteWriter records(std::size_t count, bool noise) {
  ByteWriter out;
  std::mt19937 random(1);
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = "thread-" + std::to_string(i);
    if (noise) {
      name.assign(2000, ' ');
      for (char& c : name) c = static_cast<char>(random() % 255 + 1);
    }
    write_comm(out, {1, 1, name, false}, 24);
  }
  return out;
}

std::vector<Bytes> split(Bytes bytes) {
  std::vector<Bytes> out;
  while (bytes.size() >= kRecordHeaderSize) {
    const std::size_t size = Cursor(bytes.subspan(6)).u16();
    if (size < kRecordHeaderSize || size > bytes.size()) break;
    out.push_back(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  EXPECT_TRUE(bytes.empty());
  return out;
}

std::uint32_t type_of(Bytes record) { return Cursor(record).u32(); }

void expect_comes_back(const ByteWriter& raw) {
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> packed;
  ASSERT_TRUE(compressor->compress(raw.view(), packed));
  std::vector<std::byte> back;
  for (const Bytes record : split(packed)) {
    if (type_of(record) != abi::kRecordCompressed) {
      back.insert(back.end(), record.begin(), record.end());
      continue;
    }
    // A new inflater for each: every record can be read alone, and holds whole records.
    auto inflater = RecordInflater::create();
    ASSERT_TRUE(inflater);
    Buffer piece;
    ASSERT_TRUE(inflater->inflate(record.subspan(kRecordHeaderSize), RecordCompressor::kMaxInput, piece));
    split(piece);
    back.insert(back.end(), piece.begin(), piece.end());
  }
  EXPECT_TRUE(std::ranges::equal(back, raw.view()));
}

TEST(Compression, EveryRecordCanBeReadAlone) { expect_comes_back(records(20000, false)); }

TEST(Compression, WhatDoesNotShrinkComesBackToo) { expect_comes_back(records(300, true)); }

TEST(Compression, ShrinksWhatRepeats) {
  const ByteWriter raw = records(20000, false);
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> packed;
  ASSERT_TRUE(compressor->compress(raw.view(), packed));
  EXPECT_LT(packed.size(), raw.size() / 5);
}

TEST(Compression, RecordsThatShrinkMoreAndLessByTurnsComeBack) {
  ByteWriter raw = records(20000, false);
  const ByteWriter others = records(300, true), more = records(20000, false);
  raw.bytes(others.view()).bytes(more.view());
  expect_comes_back(raw);
}

TEST(Compression, BytesThatAreNoRecordsAreRefused) {
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> packed;
  const std::vector<std::byte> zeros(64);
  EXPECT_FALSE(compressor->compress(zeros, packed));
}

TEST(Compression, OneStreamOverManyRecordsIsInflatedAsPerfWritesIt) {
  const ByteWriter raw = records(5000, false);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  auto inflater = RecordInflater::create();
  ASSERT_TRUE(inflater);
  Buffer back;
  const std::size_t step = 10007;  // records are cut anywhere
  for (std::size_t at = 0; at < raw.size(); at += step) {
    const Bytes part = raw.view().subspan(at, std::min(step, raw.size() - at));
    std::vector<std::byte> packed(ZSTD_compressBound(part.size()) + 64);
    ZSTD_inBuffer in{part.data(), part.size(), 0};
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    ASSERT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush), 0u);
    ASSERT_TRUE(inflater->inflate(Bytes(packed).first(out.pos), std::size_t{1} << 20, back));
  }
  ZSTD_freeCCtx(context);
  EXPECT_TRUE(std::ranges::equal(back, raw.view()));
}

TEST(Compression, MoreThanTheLimitIsRefused) {
  const std::vector<std::byte> zeros(1 << 20);
  std::vector<std::byte> packed(ZSTD_compressBound(zeros.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  auto inflater = RecordInflater::create();
  ASSERT_TRUE(inflater);
  Buffer out;
  EXPECT_FALSE(inflater->inflate(packed, zeros.size() - 1, out));
  inflater->reset();
  out.clear();
  EXPECT_TRUE(inflater->inflate(packed, zeros.size(), out));
  EXPECT_EQ(out.size(), zeros.size());
}

TEST(Compression, AWindowAboveEightMebibytesIsRefused) {
  // A frame header that asks for a window of 2^27 bytes, then nothing.
  const std::byte frame[] = {std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f},
                             std::byte{0xfd}, std::byte{0x00}, std::byte{17 << 3},
                             std::byte{0x01}, std::byte{0x00}, std::byte{0x00}};
  auto inflater = RecordInflater::create();
  ASSERT_TRUE(inflater);
  Buffer out;
  EXPECT_FALSE(inflater->inflate(frame, 1 << 20, out));
}

TEST(Compression, DamageInAFrameIsFound) {
  const ByteWriter raw = records(1000, false);
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> packed;
  ASSERT_TRUE(compressor->compress(raw.view(), packed));
  // Any byte after the record's header and the first 8, by which the checksum is known.
  for (std::size_t at = kRecordHeaderSize + 8; at < packed.size(); at += 1 + packed.size() / 500) {
    auto damaged = packed;
    damaged[at] ^= std::byte{0x10};
    auto inflater = RecordInflater::create();
    ASSERT_TRUE(inflater);
    Buffer out;
    EXPECT_FALSE(
        inflater->inflate(Bytes(damaged).subspan(kRecordHeaderSize), RecordCompressor::kMaxInput, out))
        << at;
    EXPECT_FALSE(
        standalone_frame_size(Bytes(damaged).subspan(kRecordHeaderSize), RecordCompressor::kMaxInput))
        << at;
  }
}

}  // namespace
}  // namespace tacho::format
