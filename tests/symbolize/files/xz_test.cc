#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "format/base/file.h"
#include "symbolize/files/decompress.h"

namespace tacho::symbolize {
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
