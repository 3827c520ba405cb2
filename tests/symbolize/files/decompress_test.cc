#include "symbolize/files/decompress.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string_view>

#include "format/base/file.h"
#include "symbolize/unwind/unwind_module.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {

namespace {

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
      const auto found = table->find_rules(pc);
      ASSERT_TRUE(found.row) << name;
      EXPECT_EQ(found.row->cfa.offset, 8) << name;
    }
    EXPECT_FALSE(table->find_rules(0x10).row) << name;
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
