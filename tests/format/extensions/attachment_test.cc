#include "format/extensions/attachment.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Attachment, ComesBackAsItWasPacked) {
  const std::string text(100000, 'x');
  auto packed = pack_attachment("kallsyms", "/proc/kallsyms", bytes_of(text));
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->packed.size(), 1000u);
  ByteWriter out;
  write_attachments(out, {*packed, *packed});
  const auto back = parse_attachments(Cursor(out.view()));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[1].name, "kallsyms");
  EXPECT_EQ((*back)[1].origin, "/proc/kallsyms");
  const auto content = unpack_attachment((*back)[1]);
  ASSERT_TRUE(content) << content.error().what;
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(content->data()), content->size()), text);
}

TEST(Attachment, AnEmptyFileIsAFile) {
  auto packed = pack_attachment("empty", "/x", {});
  ASSERT_TRUE(packed);
  const auto content = unpack_attachment(*packed);
  ASSERT_TRUE(content) << content.error().what;
  EXPECT_TRUE(content->empty());
}

TEST(Attachment, OneThatSaysAnotherSizeThanItsFrameIsRefused) {
  auto packed = pack_attachment("kallsyms", "/proc/kallsyms", bytes_of("abc"));
  ASSERT_TRUE(packed);
  packed->raw_size = std::uint64_t{1} << 27;
  EXPECT_FALSE(unpack_attachment(*packed));
}

TEST(Attachment, OneAboveTheLimitIsRefused) {
  auto packed = pack_attachment("kallsyms", "/proc/kallsyms", bytes_of(std::string(1000, 'x')));
  ASSERT_TRUE(packed);
  EXPECT_FALSE(unpack_attachment(*packed, 999));
  EXPECT_TRUE(unpack_attachment(*packed, 1000));
}

TEST(Attachment, DamageInTheFrameIsAnError) {
  auto packed =
      pack_attachment("kallsyms", "/proc/kallsyms", bytes_of("some text that does not repeat 0123456789"));
  ASSERT_TRUE(packed);
  packed->packed.resize(packed->packed.size() - 5);
  EXPECT_FALSE(unpack_attachment(*packed));
}

TEST(Attachments, AnyCutIsAnError) {
  auto packed = pack_attachment("kallsyms", "/proc/kallsyms", bytes_of("0123456789"));
  ASSERT_TRUE(packed);
  ByteWriter out;
  write_attachments(out, {*packed});
  for (std::size_t size = 0; size + 8 <= out.size(); ++size)
    EXPECT_FALSE(parse_attachments(Cursor(out.view().first(size)))) << size;
}

}  // namespace
}  // namespace tacho::format
