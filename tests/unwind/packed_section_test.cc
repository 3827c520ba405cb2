#include "unwind/packed_section.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/file.h"

namespace tacho::unwind {
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

  format::ByteWriter narrow;  // of a 32-bit file
  narrow.u32(ELFCOMPRESS_ZLIB).u32(5).u32(1).bytes(kZlibNames);
  const auto of_32_bits = unpack_shf_compressed(narrow.view(), std::endian::little, kLimit, 4);
  ASSERT_TRUE(of_32_bits);
  EXPECT_EQ(format::as_text(*of_32_bits), "names");

  named.bytes(bytes_of("ZLIB")).zeros(7).u8(5).bytes(kZlibNames);
  const auto older = unpack_zdebug(named.view(), kLimit);
  ASSERT_TRUE(older);
  EXPECT_EQ(format::as_text(*older), "names");
  EXPECT_FALSE(unpack_zdebug(marked.view(), kLimit)) << "not its mark";
  EXPECT_FALSE(unpack_zdebug(named.view().first(11), kLimit));
}

}  // namespace
}  // namespace tacho::unwind
