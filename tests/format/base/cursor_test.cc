#include "format/base/cursor.h"

#include <gtest/gtest.h>

#include <array>

#include "format/base/byte_writer.h"

namespace tacho::format {
namespace {

TEST(Cursor, ReadingPastTheEndYieldsZeroAndStaysFailed) {
  const std::array<std::byte, 5> bytes{std::byte{1}};
  Cursor in(bytes);
  EXPECT_EQ(in.u32(), 1u);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_EQ(in.u8(), 0u) << "a failed cursor must not start again";
  EXPECT_TRUE(in.failed());
}

TEST(Cursor, ReadsTheOtherByteOrder) {
  ByteWriter out;
  out.u16(0x0102).u32(0x01020304).u64(0x0102030405060708);
  Cursor in(out.view(), std::endian::native == std::endian::little ? std::endian::big : std::endian::little);
  EXPECT_EQ(in.u16(), 0x0201);
  EXPECT_EQ(in.u32(), 0x04030201u);
  EXPECT_EQ(in.u64(), 0x0807060504030201u);
  EXPECT_FALSE(in.failed());
}

TEST(Cursor, TextEndsAtItsFirstNulOrTheFieldsEnd) {
  ByteWriter out;
  out.padded_text("abc", 8).bytes(std::as_bytes(std::span(std::string_view("wxyz"))));
  Cursor in(out.view());
  EXPECT_EQ(in.text(8), "abc");
  EXPECT_EQ(in.text(4), "wxyz");
  EXPECT_EQ(in.text(1), "");
  EXPECT_TRUE(in.failed());
}

TEST(Cursor, TerminatedTextNeedsItsNul) {
  ByteWriter out;
  out.padded_text("name", 1).bytes(std::as_bytes(std::span(std::string_view("open"))));
  Cursor in(out.view());
  EXPECT_EQ(in.terminated(), "name");
  EXPECT_EQ(in.terminated(), "");
  EXPECT_TRUE(in.failed());
}

TEST(Cursor, ACountThatCannotFitIsRefusedWithoutOverflow) {
  const std::array<std::byte, 64> bytes{};
  Cursor in(bytes);
  EXPECT_TRUE(in.take_items(~std::uint64_t{0} / 8 + 2, 8).empty());
  EXPECT_TRUE(in.failed());
  Cursor fits(bytes);
  EXPECT_EQ(fits.take_items(8, 8).size(), 64u);
  EXPECT_FALSE(fits.failed());
}

TEST(U64Array, ReadsWordsAtAnyAlignment) {
  ByteWriter out;
  out.u8(0).u64(7).u64(~std::uint64_t{0});
  const U64Array words(out.view().subspan(1), std::endian::native);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0], 7u);
  EXPECT_EQ(words[1], ~std::uint64_t{0});
}

}  // namespace
}  // namespace tacho::format
