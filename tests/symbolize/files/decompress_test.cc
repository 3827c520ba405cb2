#include "symbolize/files/decompress.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "format/base/byte_writer.h"
#include "format/base/file.h"
#include "symbolize/unwind/unwind_module.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {

namespace {

constexpr std::uint64_t kLimit = 100;
constexpr std::uint32_t kZstd = 2;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// python3 -c 'import zlib; print(zlib.compress(b"names").hex())', and printf names | zstd --no-check | xxd -p
const std::vector<std::byte> kZlibNames =
    bytes_of({"\x78\x9c\xcb\x4b\xcc\x4d\x2d\x06\x00\x06\x33\x02\x15", 13});
const std::vector<std::byte> kZstdNames =
    bytes_of({"\x28\xb5\x2f\xfd\x00\x58\x29\x00\x00\x6e\x61\x6d\x65\x73", 14});

TEST(PackedSection, EveryTypeIsUnpacked) {
  for (const auto& [type, packed] :
       {std::pair(std::uint32_t{ELFCOMPRESS_ZLIB}, kZlibNames), {kZstd, kZstdNames}}) {
    const auto unpacked = unpack_section(type, packed, 5, kLimit);
    ASSERT_TRUE(unpacked) << type << unpacked.error().what;
    EXPECT_EQ(format::as_text(*unpacked), "names");
  }
}

TEST(PackedSection, WhatDoesNotKeepItsPromiseIsAnError) {
  for (const std::uint64_t size : {4, 6, 101}) {
    EXPECT_FALSE(unpack_section(ELFCOMPRESS_ZLIB, kZlibNames, size, kLimit)) << size;
    EXPECT_FALSE(unpack_section(kZstd, kZstdNames, size, kLimit)) << size;
  }
  auto damaged = kZlibNames;
  damaged[4] ^= std::byte{1};
  EXPECT_FALSE(unpack_section(ELFCOMPRESS_ZLIB, damaged, 5, kLimit));
  EXPECT_FALSE(unpack_section(ELFCOMPRESS_ZLIB, {}, 5, kLimit));
  EXPECT_EQ(unpack_section(7, kZlibNames, 5, kLimit).error().what,
            "a compressed section is of type 7, which is neither zlib nor zstd");
}

TEST(PackedSection, AClaimFarAboveWhatIsThereTakesNoMemory) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  EXPECT_EQ(unpack_section(ELFCOMPRESS_ZLIB, kZlibNames, kHuge, 2 * kHuge).error().what,
            "a compressed section has an impossible size");
}

TEST(PackedSection, HeadersAreReadInTheFilesOrder) {
  format::ByteWriter marked, named;
  marked.u32(ELFCOMPRESS_ZLIB).u32(0).u64(5).u64(1).bytes(kZlibNames);
  const auto unpacked = unpack_shf_compressed(marked.view(), std::endian::little, kLimit);
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(format::as_text(*unpacked), "names");
  EXPECT_FALSE(unpack_shf_compressed(marked.view(), std::endian::big, kLimit)) << "another type, a huge size";
  EXPECT_FALSE(unpack_shf_compressed(marked.view().first(20), std::endian::little, kLimit));

  named.bytes(bytes_of("ZLIB")).zeros(7).u8(5).bytes(kZlibNames);
  const auto older = unpack_zdebug(named.view(), kLimit);
  ASSERT_TRUE(older);
  EXPECT_EQ(format::as_text(*older), "names");
  EXPECT_FALSE(unpack_zdebug(marked.view(), kLimit)) << "not its mark";
  EXPECT_FALSE(unpack_zdebug(named.view().first(11), kLimit));
}

// The same rules in each form of the same file: plain, packed with zlib, with zstd, and under the older name.
TEST(PackedSection, CallFrameInformationIsReadFromThem) {
  constexpr std::uint64_t kOuter = 0x2c3, kLate = 0x2e9;
  for (const char* const name : {"calls-5.so", "calls-4.so", "calls-zstd.so", "calls-old.so"}) {
    auto file = format::open_input(kData + "/" + name);
    ASSERT_TRUE(file);
    auto image = ElfImage::open(std::move(*file));
    ASSERT_TRUE(image);
    auto table = CfiTable::from_debug_frame(*image);
    ASSERT_TRUE(table) << name;
    for (const std::uint64_t pc : {kOuter, kLate}) {
      const auto found = table->find(pc);
      ASSERT_TRUE(found.row) << name;
      EXPECT_EQ(found.row->cfa.offset, 8) << name;
    }
    EXPECT_FALSE(table->find(0x10).row) << name;
  }
}

}  // namespace

namespace {

// printf 'names' | xz -c
constexpr std::array<unsigned char, 64> kPacked = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x04, 0x6e, 0x61, 0x6d, 0x65, 0x73,
    0x00, 0x00, 0x00, 0x00, 0xbd, 0xdc, 0x10, 0xdf, 0x75, 0x2f, 0xb9, 0x3c, 0x00, 0x01, 0x1d, 0x05,
    0xb8, 0x2d, 0x80, 0xaf, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a};

TEST(Xz, UnpacksWhatXzPacked) {
  const auto unpacked = unpack_xz(std::as_bytes(std::span(kPacked)), 100);
  ASSERT_TRUE(unpacked) << unpacked.error().what;
  EXPECT_EQ(format::as_text(*unpacked), "names");
}

TEST(Xz, DamageAndMissingBytesAreErrors) {
  auto damaged = kPacked;
  damaged[30] ^= 1;
  EXPECT_FALSE(unpack_xz(std::as_bytes(std::span(damaged)), 100));
  EXPECT_FALSE(unpack_xz(std::as_bytes(std::span(kPacked).first(40)), 100));
  EXPECT_FALSE(unpack_xz({}, 100));
}

TEST(Xz, ChecksumIsThatOfDebuglinksAndGoesOnOverPieces) {
  const auto bytes = std::as_bytes(std::span(std::string_view("123456789")));
  EXPECT_EQ(crc32(bytes), 0xcbf43926u);
  EXPECT_EQ(crc32(bytes.subspan(4), crc32(bytes.first(4))), 0xcbf43926u);
}

}  // namespace

}  // namespace tacho::symbolize
